// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/buffer_nodes.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

bool IsBufferOp(const Node& node) {
  const absl::string_view type = node.type_string();
  // In a large graph, almost every node ends here.
  if (!absl::StartsWith(type, "TensorBuffer")) return false;
  return absl::c_linear_search(kBufferOps, type);
}

bool IsBufferPut(const Node& node) { return node.type_string() == kPutOp; }

bool IsBufferTake(const Node& node) { return node.type_string() == kTakeOp; }

std::optional<BufferKey> BufferOf(const Node& node) {
  BufferKey key;
  if (!IsBufferOp(node) ||
      !TryGetNodeAttr(node.attrs(), kContainerAttr, &key.container) ||
      !TryGetNodeAttr(node.attrs(), kSharedNameAttr, &key.name) ||
      key.name.empty()) {
    return std::nullopt;
  }
  return key;
}

}  // namespace staging
}  // namespace tensorflow
