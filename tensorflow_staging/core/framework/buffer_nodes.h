// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_NODES_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_NODES_H_

#include <optional>
#include <string>
#include <tuple>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// The nodes of a graph that belong to a stage's buffer. A graph is a user's
// input: what these functions say of a node holds whatever attributes it has.

// Whether `node` is an op around a buffer, and which one.
bool IsBufferOp(const Node& node);
bool IsBufferPut(const Node& node);
bool IsBufferTake(const Node& node);
bool IsBufferBegin(const Node& node);
bool IsBufferRestart(const Node& node);

// By what the kernels of a device find a buffer.
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

// The buffer of `node`. Nothing if `node` is no op around a buffer, or lacks an
// attribute that finds one: its kernel will refuse to be made.
std::optional<BufferKey> BufferOf(const Node& node);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_NODES_H_
