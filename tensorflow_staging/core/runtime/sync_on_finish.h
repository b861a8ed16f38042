// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_SYNC_ON_FINISH_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_SYNC_ON_FINISH_H_

#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"

namespace tensorflow {
namespace staging {

// Marks the runs of a local session that the calling thread starts during the
// lifetime of this object as runs of a stage: they return when the host has
// done its part, even if kernels are still queued on a GPU. Other runs wait
// until the queue of each GPU that they used is empty, also of what other runs
// have queued there, such as a step.
//
// A run of a stage does not need to wait:
// - It hands a record to the step. If the Take is on the device of the Put,
//   whatever uses a tensor of the record there is queued behind the kernels
//   that compute it, and TensorFlow's copies from the device wait for them. If
//   it is on another stream, the Put waits for these kernels
//   (records/record_loan.h).
// - The tensors of a record in host memory, and what a run fetches, are
//   complete when their ops have ended.
// - A GPU's memory that the run frees is used again in the order of its queue.
// - A kernel that fails in the queue fails the step, which waits for the queue.
//
// Must live on the stack of one thread. Scopes nest.
class ScopedNoSyncOnFinish {
 public:
  ScopedNoSyncOnFinish();

 private:
  const ScopedThreadValue<bool> no_sync_;
};

// Returns whether a run of the calling thread waits for its devices when it
// ends. A run that traces devices does, in any case: its trace would lack the
// kernels that are still queued.
bool SyncOnFinish(const RunOptions& options);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_SYNC_ON_FINISH_H_
