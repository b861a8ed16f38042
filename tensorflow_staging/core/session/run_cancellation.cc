// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/session/run_cancellation.h"

namespace tensorflow {
namespace staging {

void InheritCancellation(CancellationManager* session,
                         CancellationManager* run) {
  // In this order: a cancellation that is no longer in progress has ended. One
  // that begins later finds the constructed manager.
  if (session->IsCancelling() || session->IsCancelled()) run->StartCancel();
}

}  // namespace staging
}  // namespace tensorflow
