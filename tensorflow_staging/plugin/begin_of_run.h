// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_BEGIN_OF_RUN_H_
#define TENSORFLOW_STAGING_PLUGIN_BEGIN_OF_RUN_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

inline constexpr char kBeginRunOp[] = "StagedRunBegin";

// Adds the op that begins a staged run to `graph`, the placed graph of a run, if the
// run puts a record or computes what a stage feeds. All that the run does not need to
// read or draw waits for the end of its reads (graph/run/end_of_reads.h), if it has
// one: one thread computes the run, and the next run waits for that.
//
// The op has to run in the thread that calls the session. A session runs ops there
// only if all are on one device, so this returns FAILED_PRECONDITION, with both
// devices, if they are on two.
Status AddBeginOfRun(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_BEGIN_OF_RUN_H_
