// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_LOCK_LEVELS_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_LOCK_LEVELS_H_

#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {

// The order in which a thread takes the locks of the ledgers:
//
//   an iterator's own, or a TensorBuffer's
//     └▶ RollBack's
//          └▶ a Source's
//               └▶ a ReadSet's
//
// A level stands between two of these, and nobody acquires it: a lock of one class
// cannot name that of another object. ci/thread_safety.sh checks the order.
struct TF_LOCKABLE LockLevel {};

inline constexpr LockLevel kBeforeRollBack;
inline constexpr LockLevel kBeforeSources;
inline constexpr LockLevel kBeforeReadSets;

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_LOCK_LEVELS_H_
