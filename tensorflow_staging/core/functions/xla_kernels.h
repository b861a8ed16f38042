// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FUNCTIONS_XLA_KERNELS_H_
#define TENSORFLOW_STAGING_CORE_FUNCTIONS_XLA_KERNELS_H_

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace staging {

// Whether XLA has kernels for a node, and for those of the functions that it
// calls, up to 16 calls deep. It has the same for the CPU and for GPUs.
bool XlaCanCompile(const NodeDef& node,
                   const FunctionLibraryDefinition& library);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FUNCTIONS_XLA_KERNELS_H_
