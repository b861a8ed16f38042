// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_NAME_TABLE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_NAME_TABLE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {

struct MarkedClone {
  Node* node;
  CloneMark mark;
};

struct MarkedStandIn {
  Node* node;
  std::string stage;
  // Whether the records carry each output of the original.
  std::vector<bool> carried;
};

// The nodes of a rewritten graph that SmartStage marked, by the name of their
// original. This is the table of the names that a run may use although the
// graph has no such node, or only a stand-in of it.
struct NameTable {
  // A manual stage with several Puts has several clones of each node. They
  // compute the same, so the table has one of them.
  absl::flat_hash_map<std::string, MarkedClone> clones;
  absl::flat_hash_map<std::string, MarkedStandIn> stand_ins;
  // The clones that only pass on what the stage before theirs in a chain
  // computes under this name (CloneMark::passes_on).
  absl::flat_hash_map<std::string, MarkedClone> passes;
  // The name of the stand-in of each manual stage's Take, by the stage.
  std::map<std::string, std::string> take_stand_ins;

  // The nodes that TensorFlow made of clones, with their keys in `clones`. It
  // replaces functional control flow and function calls by the nodes of their
  // functions, which have no marks. Such a node has the name that it would have
  // without SmartStage, or, if another node has that name, its own.
  absl::flat_hash_map<const Node*, std::string> lowered;

  // Returns the name by which `clones` knows `node`, or nothing if the node
  // does not run ahead.
  std::optional<std::string> OriginalOf(const Node& node) const;

  // Returns the clone of the node with this name, or null.
  const MarkedClone* FindClone(absl::string_view original) const;
  // Returns the clone that passes on the values of this node, or null.
  const MarkedClone* FindPass(absl::string_view original) const;
  const MarkedStandIn* FindStandIn(absl::string_view original) const;

  const std::string* FindTakeStandIn(const std::string& stage) const;

  // Returns whether a region has a node with this name.
  bool IsMarked(absl::string_view original) const {
    return clones.contains(original) || stand_ins.contains(original);
  }

  // Returns whether the step has a node for output `output` of the node that
  // `clone` computes ahead: a stand-in that passes on what the record carries.
  bool IsCarried(absl::string_view original, int output) const;
};

// Reads the marks of `graph`. Returns INVALID_ARGUMENT if a mark is malformed.
Status ReadMarks(const Graph& graph, NameTable* nodes);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_NAME_TABLE_H_
