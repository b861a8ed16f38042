// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_FED_AHEAD_H_
#define TENSORFLOW_STAGING_PLUGIN_FED_AHEAD_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// A run that feeds what a stage computes ahead would mix the fed value with a record
// that was computed without it. In the fork, graph/run/graph_for_run.h gives such a
// run another graph. A pass of a plugin sees neither a run's feeds nor the region of
// the stage, so Python says the former, and the Take knows the latter.

// Lets each Take of `graph`, the graph of a session after its rewrite, know the names
// of the nodes from which its records are computed.
void NameWhatIsAhead(Graph* graph);

// The runs that the calling thread begins from now on feed `tensors`, by name.
void SetFeedsOfThread(std::vector<std::string> tensors);

// Returns FAILED_PRECONDITION, with the names of the tensor and of the stage, if
// `graph`, the graph of a run that the calling thread begins, takes a record that is
// computed from what the run feeds. A session calls this once for each set of feeds
// and fetches, in the thread that runs them first.
Status CheckNothingAheadIsFed(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_FED_AHEAD_H_
