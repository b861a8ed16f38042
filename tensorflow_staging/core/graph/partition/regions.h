// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REGIONS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REGIONS_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// One output of a node.
struct StagedTensor {
  const Node* node;
  int index;
  // Whether the record carries the tensor only so that a run can ask for it, or
  // for what the step can compute from it: an element of a source.
  bool only_if_asked = false;

  std::string name() const;
};

// Nodes that run ahead of the step as one unit: each run of a region yields one
// record.
struct StagedRegion {
  // The sources of the region, sorted by name: GetNexts of iterators, or the
  // Take of one earlier stage.
  std::vector<const Node*> sources;
  // All nodes of the region, sources included, each after its inputs, except
  // that the Merges of a loop come before their inputs from the loop's end.
  std::vector<const Node*> nodes;
  // The tensors of the record, sorted by name: those that nodes of the step
  // use, except those that only summaries use, and the outputs of the sources
  // (RecordContent).
  std::vector<StagedTensor> boundary;
  // The nodes of the region for which a node of the step waits by a control
  // edge, sorted by name.
  std::vector<const Node*> control_boundary;
};

// What a record carries besides the tensors that nodes of the step use. The
// step computes the other tensors of the region from it if a run asks for them.
enum class RecordContent {
  // All outputs of the sources: a reference to each, so that the record keeps
  // them in memory.
  kElements,
  // The outputs of a lone source that nothing uses. A tensor that is not in the
  // record cannot be fetched. For elements too large to keep.
  kBoundaryOnly,
};

// Collects the staged nodes of `state` into regions, one for each group of
// sources, sorted by the name of their first source. A group that would yield
// no tensor to the step gets no region. Gives a reason to every node outside
// the regions that has none yet.
//
// `stale` may be null. Otherwise a group without a lookup of `stale` gets no
// region, either, and the records also carry what the lookups yield.
std::vector<StagedRegion> CollectRegions(RecordContent content,
                                         const StaleReads* stale,
                                         PartitionState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REGIONS_H_
