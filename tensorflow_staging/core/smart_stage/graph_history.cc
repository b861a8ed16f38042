// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/graph_history.h"

#include <memory>
#include <optional>
#include <utility>

#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kContainer[] = "staging_graph_history";

// Marks a buffer that some run has used. Only its existence matters. The buffer
// itself may be in another process. The name of the mark includes the buffer's
// container, which belongs to one session.
class UsedBuffer : public ResourceBase {
 public:
  static std::string Name(const BufferKey& key) {
    return strings::StrCat(key.container, "|", key.name);
  }

  std::string DebugString() const override { return "Used staging buffer"; }
};

// Returns the manager of the resources that this file keeps. Returns null if
// all devices belong to other processes, or appear to, as in a session that
// brings its own cluster.
ResourceMgr* ManagerOf(const DeviceSet& devices) {
  if (devices.client_device() != nullptr &&
      devices.client_device()->IsLocal()) {
    return devices.client_device()->resource_manager();
  }
  return nullptr;
}

// A runner's Resume counts, because its producers prepare their Puts later.
bool UsesBuffer(const Node& node) {
  return IsBufferPut(node) || IsBufferTake(node) ||
         node.type_string() == kResumeOp;
}

}  // namespace

core::RefCountPtr<GraphHistory> GraphHistory::Of(
    const std::string& session_handle, const DeviceSet& devices) {
  ResourceMgr* manager = ManagerOf(devices);
  if (manager == nullptr) return nullptr;
  GraphHistory* history = nullptr;
  const Status status = manager->LookupOrCreate<GraphHistory>(
      kContainer, session_handle, &history, [](GraphHistory** created) {
        *created = new GraphHistory;
        return OkStatus();
      });
  if (!status.ok()) {
    LOG(ERROR) << "A session keeps no history of its graph: " << status;
    return nullptr;
  }
  return core::RefCountPtr<GraphHistory>(history);
}

void GraphHistory::Forget(const std::string& session_handle,
                          const DeviceSet& devices) {
  ResourceMgr* manager = ManagerOf(devices);
  GraphHistory* found = nullptr;
  if (manager == nullptr ||
      !manager->Lookup(kContainer, session_handle, &found).ok())
    return;
  const core::RefCountPtr<GraphHistory> history(found);
  manager->Delete<GraphHistory>(kContainer, session_handle).IgnoreError();
  mutex_lock l(history->mu_);
  for (const BufferKey& key : history->buffers_) {
    // Fails for a buffer that no run has used.
    manager->Delete<UsedBuffer>(kContainer, UsedBuffer::Name(key))
        .IgnoreError();
  }
}

NodeFilter GraphHistory::FilterIfRunning(const DeviceSet& devices) const {
  mutex_lock l(mu_);
  if (!AnyBufferIsUsed(devices)) return NodeFilter();
  return NodeFilter([nodes = nodes_](const Node& node) {
    return nodes->contains(node.name());
  });
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
    if (!IsBufferPut(*node)) continue;
    if (auto key = BufferOf(*node)) buffers_.push_back(*std::move(key));
  }
}

bool GraphHistory::IsNew(const std::string& text) {
  mutex_lock l(mu_);
  return told_.insert(text).second;
}

void GraphHistory::MarkBuffersUsed(const Graph& graph,
                                   const DeviceSet& devices) {
  ResourceMgr* manager = ManagerOf(devices);
  if (manager == nullptr) return;
  for (const Node* node : graph.op_nodes()) {
    if (!UsesBuffer(*node)) continue;
    const std::optional<BufferKey> key = BufferOf(*node);
    if (!key) continue;
    // Fails if an earlier run has marked the buffer.
    manager->Create(kContainer, UsedBuffer::Name(*key), new UsedBuffer)
        .IgnoreError();
  }
}

bool GraphHistory::AnyBufferIsUsed(const DeviceSet& devices) const {
  ResourceMgr* manager = ManagerOf(devices);
  for (const BufferKey& key : buffers_) {
    UsedBuffer* found = nullptr;
    if (!manager->Lookup(kContainer, UsedBuffer::Name(key), &found).ok()) {
      continue;
    }
    found->Unref();
    return true;
  }
  return false;
}

}  // namespace staging
}  // namespace tensorflow
