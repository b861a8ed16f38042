// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_NODES_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_NODES_H_

#include <optional>
#include <string>
#include <tuple>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Functions that recognise the nodes around a stage's buffer. A graph is user
// input, so these functions are correct for a node with any attributes.

// Return whether `node` is any op around a buffer, or the named one.
bool IsBufferOp(const Node& node);
bool IsBufferPut(const Node& node);
bool IsBufferTake(const Node& node);

// The key by which the kernels of a device find a buffer.
struct BufferKey {
  std::string container;
  std::string name;

  bool operator==(const BufferKey& other) const {
    return container == other.container && name == other.name;
  }
  bool operator<(const BufferKey& other) const {
    return std::tie(container, name) < std::tie(other.container, other.name);
  }
};

// Returns the key of the buffer that `node` uses. Returns nothing if `node` is
// not an op around a buffer, or if its attributes do not identify a buffer; its
// kernel cannot be created then.
std::optional<BufferKey> BufferOf(const Node& node);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_NODES_H_
