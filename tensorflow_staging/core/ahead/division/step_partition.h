// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_PARTITION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_PARTITION_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/flat_step.h"
#include "tensorflow_staging/core/ahead/division/random_states.h"
#include "tensorflow_staging/core/ahead/division/site_sides.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"

namespace tensorflow {
namespace staging {

// A node that uses what runs ahead and stays in the rest.
struct NodeInRest {
  std::string name;
  std::string op;
  std::string why;
};

// The nodes of a step that run ahead, as the partition of sessions decides for
// its flat graph.
struct StepPartition {
  // Why nothing runs ahead; empty if something does.
  std::string why_not;

  std::unique_ptr<FlatStep> flat;
  // By site: `ahead`, `twice` and `repeated`.
  SidesBySite sites;
  std::vector<RandomState> random_states;

  // For people: the nodes ahead, and the first that use them and stay in the
  // rest.
  std::vector<std::string> nodes_ahead;
  std::vector<NodeInRest> outside;
};

// Finds what of `root` runs ahead; its iterators are among `inputs`. `loop`, a
// node of the root or null, reads records of its own.
Status PartitionStep(const CallSite& root, std::vector<StepInput> inputs,
                     const Node* loop, const FunctionLibraryDefinition& library,
                     StepPartition* found);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_PARTITION_H_
