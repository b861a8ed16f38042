// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_DATASET_IDENTITY_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_DATASET_IDENTITY_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace staging {

// Identifies the dataset that the op of `ctx` gives to an iterator: the name of
// the op without the scopes that it shares with the iterator, so that it is the
// same in an import of the graph.
std::string NameOfInitializer(OpKernelContext* ctx);

// Identifies what the initialiser of `ctx` gives to its iterator, within this
// process: the ops of the dataset, their constants and what they read. Of large
// tensors, only the type and the shape count. 0 if it is not known.
uint64_t FingerprintOfDataset(OpKernelContext* ctx);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_DATASET_IDENTITY_H_
