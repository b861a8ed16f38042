// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_STREAM_CONSTANTS_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_STREAM_CONSTANTS_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Gives each stream its own copies of the constants of other streams of the
// same GPU that it uses. Otherwise, TensorFlow would copy them for each run,
// and wait for both streams. `graph` is the graph of a run.
Status CopyConstantsToStreams(int gpus, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_STREAM_CONSTANTS_H_
