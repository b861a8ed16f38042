// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/common_runtime/graph_history.h"

#include <memory>
#include <utility>

#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/tensor_buffer.h"
#include "tensorflow_staging/core/graph/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kContainer[] = "staging_graph_history";

using BufferKey = GraphHistory::BufferKey;

// Says by its existence that a run has asked for a buffer in another process.
// The container of the buffer, which is the session's own, is in its name.
class RemoteBuffer : public ResourceBase {
 public:
  static std::string Name(const BufferKey& key) {
    return strings::StrCat(key.first, "|", key.second);
  }

  std::string DebugString() const override { return "Remote staging buffer"; }
};

bool GetBufferKey(const Node& node, BufferKey* key) {
  return TryGetNodeAttr(node.attrs(), "container", &key->first) &&
         TryGetNodeAttr(node.attrs(), "shared_name", &key->second);
}

template <typename Resource>
bool Exists(ResourceMgr* manager, const std::string& container,
            const std::string& name) {
  Resource* found = nullptr;
  if (!manager->Lookup(container, name, &found).ok()) return false;
  found->Unref();
  return true;
}

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

void GraphHistory::Forget(const std::string& session_handle,
                          const DeviceSet& devices) {
  ResourceMgr* manager = devices.client_device()->resource_manager();
  GraphHistory* found = nullptr;
  if (!manager->Lookup(kContainer, session_handle, &found).ok()) return;
  const core::RefCountPtr<GraphHistory> history(found);
  manager->Delete<GraphHistory>(kContainer, session_handle).IgnoreError();
  mutex_lock l(history->mu_);
  for (const BufferKey& key : history->buffers_) {
    // Not every buffer is in another process.
    manager->Delete<RemoteBuffer>(kContainer, RemoteBuffer::Name(key))
        .IgnoreError();
  }
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
    if (IsBufferPut(*node) && GetBufferKey(*node, &key)) {
      buffers_.push_back(key);
    }
  }
}

void GraphHistory::NoteRun(const Graph& graph, const DeviceSet& devices) {
  for (const Node* node : graph.op_nodes()) {
    BufferKey key;
    if (!(IsBufferPut(*node) || IsBufferTake(*node)) ||
        !GetBufferKey(*node, &key)) {
      continue;
    }
    const Device* device =
        devices.FindDeviceByName(node->assigned_device_name());
    if (device == nullptr || device->IsLocal()) continue;
    // There may be one already.
    devices.client_device()
        ->resource_manager()
        ->Create(kContainer, RemoteBuffer::Name(key), new RemoteBuffer)
        .IgnoreError();
  }
}

bool GraphHistory::AnyBufferExists(const DeviceSet& devices) const {
  for (const BufferKey& key : buffers_) {
    if (Exists<RemoteBuffer>(devices.client_device()->resource_manager(),
                             kContainer, RemoteBuffer::Name(key))) {
      return true;
    }
    for (Device* device : devices.devices()) {
      if (device->IsLocal() && Exists<TensorBuffer>(device->resource_manager(),
                                                    key.first, key.second)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace staging
}  // namespace tensorflow
