// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_LLVM_LLVM_ADT_SMALLVECTOR_H_
#define TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_LLVM_LLVM_ADT_SMALLVECTOR_H_

namespace llvm {

// See ArrayRef.h.
template <typename T>
class SmallVector {};

}  // namespace llvm

#endif  // TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_LLVM_LLVM_ADT_SMALLVECTOR_H_
