// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_FUNCTION_PART_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_FUNCTION_PART_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// One output of a node, in an order that does not vary.
struct NodeOutput {
  const Node* node = nullptr;
  int index = 0;

  bool operator==(const NodeOutput& other) const {
    return node == other.node && index == other.index;
  }
};

struct NodeIdLess {
  bool operator()(const Node* a, const Node* b) const {
    return a->id() < b->id();
  }
  bool operator()(const NodeOutput& a, const NodeOutput& b) const {
    return std::make_pair(a.node->id(), a.index) <
           std::make_pair(b.node->id(), b.index);
  }
};

using NodeSet = std::set<const Node*, NodeIdLess>;

// Builds a function of some nodes of another function's graph. Names,
// attributes and devices stay as they are. Control edges between two nodes of
// the part stay.
class FunctionPart {
 public:
  explicit FunctionPart(const FunctionLibraryDefinition& library)
      : graph_(library) {}

  FunctionPart(const FunctionPart&) = delete;
  FunctionPart& operator=(const FunctionPart&) = delete;

  // Adds an input of the function, which stands for `tensor` of the other
  // graph. An _Arg keeps its name and attributes.
  Status AddInput(const NodeOutput& tensor);
  Status AddInput(const std::string& name, DataType dtype, Node** added);
  // Returns a name for a node that the other graph does not have: no node of
  // this part has it, and none of `others`, which this part will have.
  std::string NewName(const std::string& wanted, const NodeSet& others) const;
  // From here on `tensor` of the other graph is an output of `node`.
  void Replace(const NodeOutput& tensor, Node* node, int output);
  // Adds copies of `nodes` with the edges between them. A node that waited for
  // one of `awaited` by a control edge waits for `instead`, unless that is
  // null.
  Status AddNodes(const NodeSet& nodes, const NodeSet& awaited = {},
                  Node* instead = nullptr);
  // The node or the output in this part; null if it has none.
  Node* Find(const Node* node) const;
  std::pair<Node*, int> Find(const NodeOutput& tensor) const;
  Status AddOutput(const NodeOutput& tensor);
  // Adds an output that is one of `node`, a node of the part.
  Status AddOutput(Node* node, int output);

  Graph* graph() { return &graph_; }

  // Sets `*function`. It keeps of `original` what does not depend on the
  // inputs: whether it is stateful, and most attributes.
  Status Define(const std::string& name, const FunctionDef& original,
                const std::vector<Node*>& control_outputs,
                FunctionDef* function);

 private:
  Graph graph_;
  int num_inputs_ = 0;
  int num_outputs_ = 0;
  std::map<const Node*, Node*> copies_;
  std::map<NodeOutput, std::pair<Node*, int>, NodeIdLess> replaced_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_FUNCTION_PART_H_
