// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_WHOLE_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_WHOLE_GRAPH_H_

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

// Turns place_pruned_graph off in the options of a session to which `graph` is
// added, if it has a stage or SmartStage may find one: what the step uses of a
// stage's sources decides what a record holds, so passes need the whole graph.
void PlaceWholeGraphIfStaged(const GraphDef& graph, SessionOptions* options);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_WHOLE_GRAPH_H_
