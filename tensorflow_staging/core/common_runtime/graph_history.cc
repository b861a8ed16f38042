// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/common_runtime/graph_history.h"

#include <memory>
#include <utility>

#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow_staging/core/framework/tensor_buffer.h"
#include "tensorflow_staging/core/graph/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kContainer[] = "staging_graph_history";

}  // namespace

core::RefCountPtr<GraphHistory> GraphHistory::Of(
    const std::string& session_handle, const DeviceSet& devices) {
  GraphHistory* history = nullptr;
  TF_CHECK_OK(
      devices.client_device()->resource_manager()->LookupOrCreate<GraphHistory>(
          kContainer, session_handle, &history, [](GraphHistory** made) {
            *made = new GraphHistory;
            return OkStatus();
          }));
  return core::RefCountPtr<GraphHistory>(history);
}

NodeFilter GraphHistory::FilterIfRunning(const DeviceSet& devices) const {
  mutex_lock l(mu_);
  if (!AnyBufferExists(devices)) return nullptr;
  return [nodes = nodes_](const Node& node) {
    return nodes->contains(node.name());
  };
}

void GraphHistory::RememberNodes(const Graph& graph) {
  mutex_lock l(mu_);
  auto nodes = std::make_shared<Names>();
  for (const Node* node : graph.op_nodes()) nodes->insert(node->name());
  nodes_ = std::move(nodes);
}

void GraphHistory::RememberBuffers(const Graph& graph) {
  mutex_lock l(mu_);
  buffers_.clear();
  for (const Node* node : graph.op_nodes()) {
    BufferKey key;
    if (IsBufferPut(*node) &&
        TryGetNodeAttr(node->attrs(), "container", &key.first) &&
        TryGetNodeAttr(node->attrs(), "shared_name", &key.second)) {
      buffers_.push_back(key);
    }
  }
}

bool GraphHistory::AnyBufferExists(const DeviceSet& devices) const {
  for (Device* device : devices.devices()) {
    if (!device->IsLocal()) continue;
    for (const auto& [container, name] : buffers_) {
      TensorBuffer* buffer = nullptr;
      if (device->resource_manager()->Lookup(container, name, &buffer).ok()) {
        buffer->Unref();
        return true;
      }
    }
  }
  return false;
}

}  // namespace staging
}  // namespace tensorflow
