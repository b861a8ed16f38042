// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_DELIVERY_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_DELIVERY_H_

#include <map>
#include <set>
#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/device_shares.h"

namespace tensorflow {
namespace staging {

// These functions change the placement of a graph that has been rewritten by
// AlignStages and RewriteStages and then placed.

// Where the tensors of a stage's records are ahead of the step.
struct RecordPlaces {
  // The accelerator that has the Puts and Takes; empty if these do not move.
  std::string device;
  // The tensors that a record has in the memory of that; all others are in host
  // memory.
  std::set<int> held;
  // What each further accelerator gets.
  SharesByDevice shares;
};

// Those of the stages that deliver their records.
using PlacesOfStages = std::map<BufferKey, RecordPlaces>;

// Chooses where the records of stages are.
//
// A stage that delivers its records (kDeliversAttr) moves them to the devices
// where the step uses them. If the step uses a tensor of a record in the memory
// of an accelerator of the same task, the stage's Puts and Takes move to that
// accelerator; if it uses several accelerators, to the one with the most uses.
// The Put then copies its inputs from the host to that accelerator
// (kCopiedInputsAttr), and what the step uses on further ones to these
// (device_shares.h), where the step finds them (give_shares.h). Tensors that the
// step uses on the host stay in host memory, in the same record.
//
// Any other stage on an accelerator keeps on the host what it gets from there
// and the step does not use on the accelerator, such as the elements of which
// steps only use what has been computed. Copying it would cost the stage a
// transfer that nobody needs, and strings can't be copied.
//
// Stages in `*places` deliver their records to where these say. A stage that runs
// has its kernels already, so nothing that is added to its graph may change that:
// TensorFlow copies what it uses elsewhere. Adds the places of all other stages.
Status PlaceRecords(PlacesOfStages* places, Graph* graph);

// Moves the control ops of stages from accelerators to the first CPU of the
// same task; they find their buffers from there. A control edge from an
// accelerator to a CPU is a copy that waits until the accelerator has done all
// that is queued. And a run of control ops on the CPU needs no thread but that
// of its caller.
void MoveControlOpsToCpu(Graph* graph);

// Call this before placement. Lets the placer choose the devices of the ops
// around buffers again. When a
// session's graph is extended, TensorFlow assigns to each stateful op the
// device that it had before. The ops that have been moved since then would
// contradict their colocation, and the placer would refuse the graph.
void ForgetDevicesOfBufferOps(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_DELIVERY_H_
