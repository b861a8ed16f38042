// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/graph_history.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kContainer[] = "staging_graph_history";

// Marks a buffer that some run has used, or, by its handle, a session that was
// asked for its stages. Only its existence matters. The buffer itself may be in
// another process.
class Mark : public ResourceBase {
  std::string DebugString() const override { return "Used staging buffer"; }
};

// The name of a buffer's mark. The container belongs to one session.
std::string MarkOf(const BufferKey& key) {
  return strings::StrCat(key.container, "|", key.name);
}

bool IsMarked(ResourceMgr* manager, const std::string& name) {
  Mark* found = nullptr;
  if (!manager->Lookup(kContainer, name, &found).ok()) return false;
  found->Unref();
  return true;
}

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
      kContainer, session_handle, &history,
      [&session_handle](GraphHistory** created) {
        *created = new GraphHistory(session_handle);
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
  // Each fails if it was not marked.
  manager->Delete<Mark>(kContainer, session_handle).IgnoreError();
  mutex_lock l(history->mu_);
  for (const std::string& mark : history->buffers_) {
    manager->Delete<Mark>(kContainer, mark).IgnoreError();
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

PlacesOfStages GraphHistory::PlacesIfRunning(const DeviceSet& devices) const {
  mutex_lock l(mu_);
  return AnyBufferIsUsed(devices) ? places_ : PlacesOfStages();
}

void GraphHistory::RememberPlaces(PlacesOfStages places) {
  mutex_lock l(mu_);
  places_ = std::move(places);
}

void GraphHistory::RememberBuffers(const Graph& graph) {
  mutex_lock l(mu_);
  buffers_.clear();
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferPut(*node)) continue;
    if (const auto key = BufferOf(*node)) buffers_.push_back(MarkOf(*key));
  }
}

bool GraphHistory::HasStartedWithoutStages(const DeviceSet& devices) {
  mutex_lock l(mu_);
  if (buffers_.empty() && !started_without_stages_) {
    started_without_stages_ = IsMarked(ManagerOf(devices), session_handle_);
  }
  return started_without_stages_;
}

bool GraphHistory::IsNew(const std::string& text) {
  mutex_lock l(mu_);
  return told_.insert(text).second;
}

void GraphHistory::MarkBuffersUsed(const Graph& graph,
                                   const DeviceSet& devices) {
  ResourceMgr* manager = ManagerOf(devices);
  if (manager == nullptr) return;
  // Fails if an earlier run has made the mark.
  const auto mark = [manager](const std::string& name) {
    manager->Create(kContainer, name, new Mark).IgnoreError();
  };
  for (const Node* node : graph.op_nodes()) {
    std::string session;
    if (node->name() == kRunnersNode &&
        TryGetNodeAttr(node->attrs(), kSessionAttr, &session)) {
      mark(session);
    }
    if (!UsesBuffer(*node)) continue;
    if (const auto key = BufferOf(*node)) mark(MarkOf(*key));
  }
}

bool GraphHistory::AnyBufferIsUsed(const DeviceSet& devices) const {
  ResourceMgr* manager = ManagerOf(devices);
  return absl::c_any_of(buffers_, [manager](const std::string& mark) {
    return IsMarked(manager, mark);
  });
}

}  // namespace staging
}  // namespace tensorflow
