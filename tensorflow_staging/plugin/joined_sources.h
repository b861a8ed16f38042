// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_JOINED_SOURCES_H_
#define TENSORFLOW_STAGING_PLUGIN_JOINED_SOURCES_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// A record may join the elements of several iterators. A run that needs only some of
// them would take the others, too, and not use them. In the fork,
// graph/run/step_computation.h refuses such a run. A plugin sees only what a run needs
// of the graph, so the Take has to know what its outputs are computed from.

// Lets each Take of `graph`, the graph of a session after its rewrite, know the sources
// of each output, if its records have several.
void NameSources(Graph* graph);

// Returns FAILED_PRECONDITION, with the names of the sources, if `graph`, the graph of
// a run, uses outputs of a Take that are not computed from all of its sources.
Status CheckAllSourcesAreUsed(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_JOINED_SOURCES_H_
