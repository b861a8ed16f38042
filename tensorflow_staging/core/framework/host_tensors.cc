// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/host_tensors.h"

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

std::vector<int> HostTensors(const AttrSlice& node,
                             const MemoryTypeVector& memory) {
  // These are on the accelerator once the Put has run.
  std::vector<int> copied;
  TryGetNodeAttr(node, kCopiedInputsAttr, &copied);
  std::vector<int> on_host;
  for (int i = 0; i < static_cast<int>(memory.size()); ++i) {
    if (memory[i] == HOST_MEMORY && !absl::c_linear_search(copied, i)) {
      on_host.push_back(i);
    }
  }
  return on_host;
}

}  // namespace staging
}  // namespace tensorflow
