// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_LLVM_LLVM_ADT_ARRAYREF_H_
#define TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_LLVM_LLVM_ADT_ARRAYREF_H_

#include "llvm/ADT/SmallVector.h"

namespace llvm {

// What the headers of StreamExecutor need of LLVM, whose headers some wheels of
// TensorFlow lack: a class that describes copies of CUDA has such members. It is
// declared in these headers, and nothing here makes one.
template <typename T>
class ArrayRef {
 public:
  ArrayRef(const SmallVector<T>&) {}  // NOLINT(runtime/explicit)
};

}  // namespace llvm

#endif  // TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_LLVM_LLVM_ADT_ARRAYREF_H_
