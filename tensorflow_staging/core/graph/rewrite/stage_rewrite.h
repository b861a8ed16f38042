// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_REWRITE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_REWRITE_H_

#include <optional>
#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/buffer_settings.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// How RewriteStages builds the stages that SmartStage found. Manual stages keep
// their own settings, except where noted.
struct RewriteOptions {
  // Those of the stages that SmartStage finds.
  BufferSettings buffer;
  // Whether to place regions on the CPU of the task where they would run
  // otherwise; if unset, those that ask for no accelerator. Such a stage
  // delivers its records, once the graph is placed (PlaceRecords). Applies to
  // manual stages, too.
  std::optional<bool> on_cpu = false;
  // Whether a stage runs where the variables are that it reads, even if it
  // delivers its records.
  bool with_variables = false;
  // Whether the stand-ins are in the task of the Take (ReplaceByStandIns).
  bool beside_take = false;
  // Whether to infer the static shapes of what the step takes. Optimizers use
  // them; runs do not.
  bool infer_shapes = true;
  // Distinguishes the buffers of this session from those of others: part of the
  // containers of all buffers. If it is empty, a manual stage to which
  // SmartStage adds nothing keeps its container.
  std::string session;
};

// Rewrites `graph` according to `plan`, the plan of this graph, so that its
// stages run ahead of the step.
//
// Clones of a region's nodes, with new names, run ahead: they compute the
// record, which a Put puts into the stage's buffer. The original names stay on the
// step's side, for the values that the step sees: a stand-in replaces each node
// that the step uses, and passes on what the Take yields.
//
//   before:   source --> hash --> gather --> loss
//
//   after:    stage/staged/source --> stage/staged/hash --> stage/...Put
//             stage/...Take --> hash (Identity) --> gather --> loss
//                               source (StagedNode), for runs that name it
//
// A node of the region that the step does not use has no stand-in. A run that
// names it computes it from the record (core/graph/run/step_computation.h).
//
// In a manual stage, the clones begin at the inputs of its Put, and the Put
// keeps its name.
//
// Returns ALREADY_EXISTS if a node has the name of a node that the rewrite
// creates. This is possible only if the plan was made with a filter.
//
// After an error, `graph` is unusable. In any case, `plan` and all that it
// points to describe the graph before the rewrite and must not be used any
// more.
Status RewriteStages(const StagePlan& plan, const RewriteOptions& options,
                     Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_REWRITE_H_
