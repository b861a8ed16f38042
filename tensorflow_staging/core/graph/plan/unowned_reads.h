// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLAN_UNOWNED_READS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLAN_UNOWNED_READS_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// A read of which a staged run learns nothing (core/sources/staged_run.h), so
// that its stage keeps old records when the iterator is initialised or
// restored, and a save of the iterator lacks what was read ahead.
struct UnownedRead {
  enum class Reason {
    kOtherProcess,  // The iterator is not in the process of the buffer.
    kRemoteCall,    // `reader` calls a function that runs apart.
    kEagerPython,   // `reader` runs eager code, which may read anything.
  };
  Reason reason;
  // The op of the iterator's handle. Null if it is not known.
  const Node* iterator = nullptr;
  // The node that reads it, or calls a function which does.
  const Node* reader = nullptr;
};

// Returns the reads of each stage of `plan`, a plan of `graph`, which has been
// placed, in the order of its stages.
std::vector<std::vector<UnownedRead>> FindUnownedReads(const Graph& graph,
                                                       const StagePlan& plan);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLAN_UNOWNED_READS_H_
