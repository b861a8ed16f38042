// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_BEGINS_WITHOUT_PUT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_BEGINS_WITHOUT_PUT_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// The TensorBufferBegins that the run needs although it puts no record into
// their buffers. Such a run is no producer's: it only looks at a value of the
// region, and must not wait until the stage admits it.
std::vector<Node*> BeginsWithoutPut(const Graph& graph, const RunRequest& run);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_BEGINS_WITHOUT_PUT_H_
