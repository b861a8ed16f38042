// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_GRAPH_HISTORY_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_GRAPH_HISTORY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/place/stage_delivery.h"

namespace tensorflow {
namespace staging {

// Remembers which nodes a session's graph had when its stages began to run, and
// where their records were.
//
// When a session's graph is extended, the graph passes see the whole graph
// again. The new nodes must not change the regions: the buffers hold records of
// the old partition, and the runners continue to put records of that partition,
// with the kernels that they have.
//
// A history is a resource of the session's client device. Thread-safe.
class GraphHistory : public ResourceBase {
 public:
  // Returns the history of the session with this handle, and creates it if
  // necessary. Returns null for a session that brings its own cluster, because
  // it has no device to keep the history.
  static core::RefCountPtr<GraphHistory> Of(const std::string& session_handle,
                                            const DeviceSet& devices);

  // Deletes the history of the session with this handle, and the marks of its
  // buffers, if they exist. For sessions that end before their devices do.
  static void Forget(const std::string& session_handle,
                     const DeviceSet& devices);

  // Returns a filter that accepts the nodes that the session had when its
  // stages began to run; all nodes, if they have not begun.
  NodeFilter FilterIfRunning(const DeviceSet& devices) const
      TF_LOCKS_EXCLUDED(mu_);

  // Remembers the nodes of the session's graph. Call this before the rewrite,
  // unless the stages are running.
  void RememberNodes(const Graph& graph) TF_LOCKS_EXCLUDED(mu_);

  // Remembers the buffers of the session's graph. Call this after the rewrite.
  void RememberBuffers(const Graph& graph) TF_LOCKS_EXCLUDED(mu_);

  // Returns where the records of stages are that run; of no stage, if they have
  // not begun.
  PlacesOfStages PlacesIfRunning(const DeviceSet& devices) const
      TF_LOCKS_EXCLUDED(mu_);

  // Remembers where the records of the session's stages are. Call this after
  // placement.
  void RememberPlaces(PlacesOfStages places) TF_LOCKS_EXCLUDED(mu_);

  // Returns whether this is the first call with `text`. What the graph passes
  // tell the user, they tell once, not each time that the graph grows.
  bool IsNew(const std::string& text) TF_LOCKS_EXCLUDED(mu_);

  // Whether the program has asked for the stages of the session, to start them,
  // when it had none. A stage that SmartStage added later would not run.
  // Call this before RememberBuffers.
  bool HasStartedWithoutStages(const DeviceSet& devices) TF_LOCKS_EXCLUDED(mu_);

  // Marks the buffers in `graph`, the graph of one run, as used: from now on
  // they may hold records of the current partition. Call this for each run. The
  // history of the run's session finds the marks, so that the caller need not
  // know the session. The marks are necessary because a buffer may be in
  // another process, or on a device that only the run knows, where the history
  // cannot look for it. If the run asks for the session's stages, marks that,
  // too.
  static void MarkBuffersUsed(const Graph& graph, const DeviceSet& devices);

  std::string DebugString() const override { return "Staging graph history"; }

 private:
  using Names = absl::flat_hash_set<std::string>;

  explicit GraphHistory(std::string session_handle)
      : session_handle_(std::move(session_handle)) {}

  bool AnyBufferIsUsed(const DeviceSet& devices) const
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string session_handle_;
  mutable mutex mu_;
  std::shared_ptr<const Names> nodes_ TF_GUARDED_BY(mu_);
  // The names of the marks of the session's buffers.
  std::vector<std::string> buffers_ TF_GUARDED_BY(mu_);
  PlacesOfStages places_ TF_GUARDED_BY(mu_);
  bool started_without_stages_ TF_GUARDED_BY(mu_) = false;
  Names told_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_GRAPH_HISTORY_H_
