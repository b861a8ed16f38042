// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RECORD_DEVICE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RECORD_DEVICE_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Tells the ops that save and restore the records of stages in whose memory the
// records are (kRecordsDeviceAttr), and which of their tensors are in host
// memory all the same (kHostTensorsAttr). These ops run on a CPU, and a restore
// comes before the first Put.
//
// `graph` must have been placed, and its Puts moved to their devices
// (HandOverRecords, DeliverToConsumers).
Status NameDeviceOfRecords(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RECORD_DEVICE_H_
