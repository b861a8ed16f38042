// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_DRAW_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_DRAW_H_

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"

namespace tensorflow {
namespace staging {

// A node that uses the state of a random generator, a variable of which input
// `input` is the handle. Generators come in two kinds:
//
//   tf.random.Generator    draws by RngReadAndSkip, also in loops, conditionals
//                          and calls
//   a counter, such as     is read and assigned; what is assigned depends on the
//   Keras 3's SeedGenerator  counter alone
struct Draw : SiteNode {
  int input = 0;
  // Of a loop, a conditional or a call: TensorFlow's number of the algorithm with
  // which all of it draws. 0 for others.
  int algorithm = 0;
};

inline bool IsReadAndSkip(const Node& node) {
  return node.type_string() == "RngReadAndSkip";
}

// The type of the variable that `node` reads or assigns.
inline DataType TypeOfVariable(const Node& node) {
  const AttrValue* const dtype = node.attrs().Find("dtype");
  return dtype == nullptr ? DT_INVALID : dtype->type();
}

inline bool IsCounterRead(const Node& node) {
  return node.type_string() == "ReadVariableOp" &&
         DataTypeIsInteger(TypeOfVariable(node));
}

inline bool IsCounterAssignment(const Node& node) {
  return (node.type_string() == "AssignVariableOp" ||
          node.type_string() == "AssignAddVariableOp" ||
          node.type_string() == "AssignSubVariableOp") &&
         DataTypeIsInteger(TypeOfVariable(node));
}

// The type of the state from which `draw` draws.
inline DataType TypeOfState(const Draw& draw) {
  return IsCounterRead(*draw.node) || IsCounterAssignment(*draw.node)
             ? TypeOfVariable(*draw.node)
             : DT_INT64;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_DRAW_H_
