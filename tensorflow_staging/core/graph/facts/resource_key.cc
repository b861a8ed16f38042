// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/resource_key.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

ResourceKind KindOf(absl::string_view op) {
  if (op == "Iterator" || op == "IteratorV2" || op == "OneShotIterator") {
    return ResourceKind::kIterator;
  }
  if (op == "MultiDeviceIterator") return ResourceKind::kMultiDeviceIterator;
  if (op == "VarHandleOp") return ResourceKind::kResourceVariable;
  if (op == "Variable" || op == "VariableV2") return ResourceKind::kRefVariable;
  if (absl::StrContains(op, "HashTable")) return ResourceKind::kTable;
  return ResourceKind::kOther;
}

bool UsesNodeName(ResourceKind kind, const NodeDef& node) {
  bool use_node_name = false;
  return kind == ResourceKind::kRefVariable ||
         (TryGetNodeAttr(node, "use_node_name_sharing", &use_node_name) &&
          use_node_name);
}

// Returns whether an empty container is the container called `name`: each
// device has a default container, which has the name of the device's job.
bool IsDefaultContainer(const std::string& name, const NodeDef& node) {
  DeviceNameUtils::ParsedName device;
  return name == "localhost" ||
         (DeviceNameUtils::ParseFullName(node.device(), &device) &&
          device.has_job && name == device.job);
}

}  // namespace

std::optional<ResourceKey> SharedResourceOf(const NodeDef& node) {
  ResourceKey key;
  key.kind = KindOf(node.op());
  // A node of a function may lack attributes that have their default values.
  const bool has_name = TryGetNodeAttr(node, kSharedNameAttr, &key.name);
  TryGetNodeAttr(node, kContainerAttr, &key.container);
  if ((!has_name && key.kind == ResourceKind::kOther) ||
      key.name == ResourceHandle::ANONYMOUS_NAME) {
    return std::nullopt;
  }
  if (key.name.empty() && key.kind != ResourceKind::kResourceVariable) {
    if (!UsesNodeName(key.kind, node)) return std::nullopt;
    key.name = node.name();
  }
  if (IsDefaultContainer(key.container, node)) key.container.clear();
  return key;
}

}  // namespace staging
}  // namespace tensorflow
