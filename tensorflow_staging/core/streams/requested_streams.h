// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_REQUESTED_STREAMS_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_REQUESTED_STREAMS_H_

#include <optional>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/streams/stream_settings.h"

namespace tensorflow {
namespace staging {

// The number of the stream that each node asks for, by node id. A node that
// asks for none runs on stream 0, or with those with which it is colocated.
using RequestedStreams = std::vector<std::optional<int>>;

// Reads which streams the nodes of `graph` ask for. A node asks for the stream
// of the tf.stream in which it was created. If `settings.stages`, a node that
// only leads to Puts of stages on one stream asks for that stream instead.
//
// The number of a Put is that of its stage. The Put asks for it if
// `settings.stages`, unless the records come from the CPU; otherwise it asks
// for no stream.
//
// Returns INVALID_ARGUMENT, with the node and its number, if the number is not
// that of a stream of the session.
Status ReadRequestedStreams(const StreamSettings& settings, const Graph& graph,
                            RequestedStreams* requested);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_REQUESTED_STREAMS_H_
