// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCE_KEY_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCE_KEY_H_

#include <optional>
#include <string>
#include <tuple>

#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace staging {

// What a handle stands for. Two resources of different kinds may have the same
// name on one device.
enum class ResourceKind {
  kIterator,
  kMultiDeviceIterator,
  kTable,  // Of every type.
  kResourceVariable,
  kRefVariable,
  kOther,  // A queue, for example.
};

// The key by which the kernels of one device find a resource. Handle ops with
// equal keys share one resource.
struct ResourceKey {
  ResourceKind kind = ResourceKind::kOther;
  std::string container;
  std::string name;

  bool operator==(const ResourceKey& other) const {
    return Tied() == other.Tied();
  }
  bool operator<(const ResourceKey& other) const {
    return Tied() < other.Tied();
  }

 private:
  std::tuple<const ResourceKind&, const std::string&, const std::string&> Tied()
      const {
    return std::tie(kind, container, name);
  }
};

// Returns the key of the resource whose handle `node` yields. Returns nothing
// if the resource belongs to `node` alone, and if `node` yields no handle by
// itself.
//
// The op decides which name a node without a shared_name gives its resource:
//   * a variable with references (VariableV2) uses the name of the node;
//   * so does a table, with use_node_name_sharing;
//   * a resource variable uses the empty name: all of them are one variable;
//   * other resources, such as iterators, belong to the node alone.
std::optional<ResourceKey> SharedResourceOf(const NodeDef& node);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCE_KEY_H_
