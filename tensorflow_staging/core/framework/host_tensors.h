// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_HOST_TENSORS_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_HOST_TENSORS_H_

#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace staging {

// Returns the indices of the tensors that are in host memory although their
// record is on an accelerator. `node` has the attributes of a Put or a Take
// there, and `memory` says where the inputs of the Put, or the outputs of the
// Take, are.
std::vector<int> HostTensors(const AttrSlice& node,
                             const MemoryTypeVector& memory);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_HOST_TENSORS_H_
