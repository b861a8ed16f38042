// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_RUN_CANCELLATION_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_RUN_CANCELLATION_H_

#include "tensorflow/core/framework/cancellation.h"

namespace tensorflow {
namespace staging {

// Returns whether `manager` is being cancelled or has been. IsCancelled becomes
// true only after the callbacks of a cancellation; somebody whom a callback
// wakes would go back to sleep for good.
inline bool HasBeenCancelled(CancellationManager* manager) {
  // In this order: a cancellation that is no longer in progress has ended.
  return manager->IsCancelling() || manager->IsCancelled();
}

// Cancels `run` if its parent, the session's manager, has been cancelled. Must
// be called once `run` has been constructed.
//
// TensorFlow's constructor first registers the manager with its parent, and
// then sets whether it is cancelled to the answer. If the parent is cancelled
// between the two, it cancels the new manager, and the constructor forgets
// that: the run would go on in a closed session, and a Put without room would
// wait for its timeout.
inline void InheritCancellation(CancellationManager* session,
                                CancellationManager* run) {
  // A cancellation that begins later finds the constructed manager.
  if (HasBeenCancelled(session)) run->StartCancel();
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_RUN_CANCELLATION_H_
