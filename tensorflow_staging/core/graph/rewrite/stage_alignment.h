// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_ALIGNMENT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_ALIGNMENT_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/partition/regions.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"

namespace tensorflow {
namespace staging {

// A stage that was added after those of the session had begun to run. A step
// that takes its record and uses `source` gets two elements.
struct LateStage {
  std::string name;
  std::string source;
};

// Lets each step use one element, also where it uses a source that a manual
// stage reads: the record then carries what the step uses.
//
//   before:   source --> hash --> Put       Take --> loss
//                    -----------------------------> loss
//
//   after:    stage/region/source --> stage/region/hash --> Put
//                                 ----------------------->
//             Take --> loss
//             Take:1 --> source (Identity) --> loss
//
// As in the rewrite of a region that SmartStage found, a name means the value
// that the step sees: the nodes of the region get new names, and stand-ins have
// theirs. The Put and the Take keep their names and places; their record is
// longer.
//
// The stages follow each other in the order of their Puts and Takes. If two
// stages use one source, the later one takes the records of the earlier one, so
// that they become a chain: its own records carry what the step uses of them.
//
// Call this before the graph's StagePlan. `counts` is as for StagePlan: nodes
// that it rejects do not change what records carry. Adds to `*late`, unless it is
// null, the stages that stay as they are: running ones may read the same source.
Status AlignStages(const NodeFilter& counts, RecordContent content,
                   const RewriteOptions& options, Graph* graph,
                   std::vector<LateStage>* late = nullptr);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_ALIGNMENT_H_
