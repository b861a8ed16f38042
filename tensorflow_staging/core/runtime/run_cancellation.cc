// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/run_cancellation.h"

namespace tensorflow {
namespace staging {

bool HasBeenCancelled(CancellationManager* manager) {
  // In this order: a cancellation that is no longer in progress has ended.
  return manager->IsCancelling() || manager->IsCancelled();
}

void InheritCancellation(CancellationManager* session,
                         CancellationManager* run) {
  // A cancellation that begins later finds the constructed manager.
  if (HasBeenCancelled(session)) run->StartCancel();
}

}  // namespace staging
}  // namespace tensorflow
