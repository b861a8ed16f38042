// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_REWRITE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_REWRITE_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// How the stages that SmartStage makes are to be; those of tf.staged keep what
// they have.
struct RewriteOptions {
  int64_t capacity = 1;
  int64_t timeout_millis = 300000;
  // 0 leaves the staged part on the stream of the step.
  int64_t stream_id = 0;
  // Whether what runs ahead is placed on the CPU of the task where it would
  // run. Holds for the stages of tf.staged, too. DeliverToConsumers does the
  // rest once the graph is placed.
  bool on_cpu = false;
  // Tells the buffers of one session from those of others. Mixed into the
  // container of every buffer; empty leaves the buffers of tf.staged where they
  // are.
  std::string session;
};

// Rewrites `graph`, of which `plan` is the plan, so that its stages run ahead.
//
// What a region's nodes compute is computed by clones of them, under new names,
// which end in a Put. The names stay on the step's side, where they mean what
// the step sees: each node of the region gives way to one of the same name that
// passes on what a Take has taken.
//
//   before:   source --> hash --> gather --> loss
//
//   after:    stage/staged/source --> stage/staged/hash --> stage/...Put
//             stage/...Take --> hash (Identity) --> gather --> loss
//                               source (StagedNode), to be named, not used
//
// For a stage of tf.staged the clones begin at what its Put was given, and the
// Put keeps its name. Where an iterator of a stage can be initialised again, a
// Begin stands before the sources and a Restart before the initialiser.
//
// Returns ALREADY_EXISTS if a node has the name of one that would be made; that
// can be where the plan was made with a filter.
//
// After an error `graph` is unusable. `plan` and all that it points to belong
// to the graph as it was: use them no more.
Status RewriteStages(const StagePlan& plan, const RewriteOptions& options,
                     Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_REWRITE_H_
