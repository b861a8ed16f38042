// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/buffer_nodes.h"

#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

bool IsBufferOp(const Node& node) {
  static const auto* const kOps = new absl::flat_hash_set<absl::string_view>(
      std::begin(kBufferOps), std::end(kBufferOps));
  return kOps->contains(node.type_string());
}

bool IsBufferPut(const Node& node) { return node.type_string() == kPutOp; }

bool IsBufferTake(const Node& node) { return node.type_string() == kTakeOp; }

bool IsBufferBegin(const Node& node) { return node.type_string() == kBeginOp; }

bool IsBufferRestart(const Node& node) {
  return node.type_string() == kRestartOp;
}

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
