// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_STREAM_PLACEMENT_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_STREAM_PLACEMENT_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/streams/requested_streams.h"

namespace tensorflow {
namespace staging {

// Moves nodes of a placed graph from the GPUs, /gpu:0 to /gpu:<gpus - 1>, to
// the devices of the streams that they ask for: stream `k` of GPU `p` is
// /gpu:<k * gpus + p>. Nodes on other devices stay there, also if a program has
// named the device of a stream.
//
// Nodes that must be on one device move together, to the stream of one of them:
// of the node that holds a variable or another resource, or else of the node
// with which the others are colocated. So the ops of a variable stay on its
// stream. The Puts and Takes of a stage are on the stream for which its Put
// asks, or else on that for which its Take asks; HandOverRecords moves Takes
// from there to the step.
void PlaceOnStreams(int gpus, const RequestedStreams& requested, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_STREAM_PLACEMENT_H_
