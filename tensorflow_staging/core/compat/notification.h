// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_COMPAT_NOTIFICATION_H_
#define TENSORFLOW_STAGING_CORE_COMPAT_NOTIFICATION_H_

#include "tensorflow/core/platform/notification.h"

// Later versions have only that of Abseil, whose functions are the same.
#if !__has_include(                           \
    "tsl/platform/default/notification.h") && \
    !__has_include("tensorflow/tsl/platform/default/notification.h")
#include "absl/synchronization/notification.h"

namespace tensorflow {

using absl::Notification;

}  // namespace tensorflow
#endif

#endif  // TENSORFLOW_STAGING_CORE_COMPAT_NOTIFICATION_H_
