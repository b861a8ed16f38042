// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STAGE_PARTITION_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STAGE_PARTITION_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"

namespace tensorflow {
namespace staging {

// One output of a node.
struct StagedTensor {
  const Node* node;
  int index;

  std::string name() const;
};

// A part of the graph that runs ahead of the training step, as one unit: one
// run of it yields one record.
struct StagedRegion {
  // The sources of its records, by name: iterators' nodes, or the Take of one
  // stage of tf.staged.
  std::vector<const Node*> sources;
  // All nodes that run ahead, sources included, each after its inputs.
  std::vector<const Node*> nodes;
  // The record: the tensors that the training step needs, by name.
  std::vector<StagedTensor> boundary;
  // Staged nodes that a node of the training step waits for by a control edge.
  std::vector<const Node*> control_boundary;
};

// Which part of a graph can run ahead of the training step, and why not more.
//
// A node can run ahead if neither it nor anything that it depends on, by data
// or by control, belongs to the training step (NodeRole::kStepOnly). Of these
// nodes the partition takes those that lie between a source and the step: what
// depends on a source and is needed by a node of the step. What depends on no
// source and is pure (constants) is left where it is, for both sides.
//
// Records and steps stay aligned whatever a step fetches, because each tensor
// of a region's record depends on all of the region's sources: a step that
// takes a record would have advanced just these sources without the stage.
// Where that would not be so, nodes that mix sources stay in the step, and so
// does an iterator that the step reads itself.
class StagePartition {
 public:
  // Works in time and memory linear in the nodes and edges of `graph`, apart
  // from the number of sources that single nodes depend on.
  //
  // With `counts`, the partition is that of a graph as it was before the nodes
  // came that do not count.
  explicit StagePartition(const Graph& graph,
                          const NodeFilter& counts = nullptr);

  StagePartition(const StagePartition&) = delete;
  StagePartition& operator=(const StagePartition&) = delete;

  // By the name of their first source. None of them shares a node with another.
  const std::vector<StagedRegion>& regions() const { return regions_; }

  // Why `node` does not run ahead; kNone if it does.
  StepCause WhyNot(const Node& node) const;

 private:
  std::vector<StagedRegion> regions_;
  std::vector<StepCause> causes_;  // By node id.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STAGE_PARTITION_H_
