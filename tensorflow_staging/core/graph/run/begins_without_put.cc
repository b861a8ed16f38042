// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/begins_without_put.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tensorflow_staging/core/framework/buffer_nodes.h"

namespace tensorflow {
namespace staging {

std::vector<const Node*> BeginsWithoutPut(
    const std::vector<const Node*>& needed) {
  std::vector<const Node*> begins;
  std::set<std::optional<BufferKey>> put_into;
  for (const Node* node : needed) {
    if (IsBufferBegin(*node)) begins.push_back(node);
    if (IsBufferPut(*node)) put_into.insert(BufferOf(*node));
  }
  begins.erase(std::remove_if(begins.begin(), begins.end(),
                              [&](const Node* begin) {
                                return put_into.count(BufferOf(*begin)) > 0;
                              }),
               begins.end());
  return begins;
}

}  // namespace staging
}  // namespace tensorflow
