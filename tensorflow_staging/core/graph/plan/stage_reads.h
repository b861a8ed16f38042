// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_READS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_READS_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// What a stage reads that the rest of the program may read or change, too.
struct StageReads {
  struct Iterator {
    // The op of its handle.
    const Node* iterator = nullptr;
    // The nodes outside the stage that may read elements of it, too. What they
    // get is in no record. In the order of the graph.
    std::vector<const Node*> other_readers;
  };
  struct State {
    // The op of a variable or a table.
    const Node* owner = nullptr;
    // Nodes outside the stage that may change it while the program trains, in
    // the order of the graph.
    std::vector<const Node*> changers;
  };

  // Both in the order of the graph.
  std::vector<Iterator> iterators;
  std::vector<State> changing;
};

// Returns what each stage of `plan`, a plan of `graph`, reads, in the order of
// its stages.
std::vector<StageReads> FindStageReads(const Graph& graph,
                                       const StagePlan& plan);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_READS_H_
