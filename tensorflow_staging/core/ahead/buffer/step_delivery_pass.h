// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_DELIVERY_PASS_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_DELIVERY_PASS_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Moves each StepBufferTake of a placed graph to the accelerator in whose memory
// the rest uses most of its record (RecordDelivery). What is used on the host,
// too, stays there. Further accelerators get shares (framework/device_shares.h).
Status DeliverRecords(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_DELIVERY_PASS_H_
