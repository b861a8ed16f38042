// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SESSION_GRAPH_HISTORY_H_
#define TENSORFLOW_STAGING_CORE_SESSION_GRAPH_HISTORY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {

// What a session's graph was when its stages began to run.
//
// A session that gets more nodes is given the whole graph anew. The new nodes
// must not change what is staged: the buffers hold records of the old cut, and
// the runners go on to put such.
//
// Lives among the resources of the session's client device. Thread-safe.
class GraphHistory : public ResourceBase {
 public:
  // The history of the session with this handle; made if there is none. Null
  // for a session that brings its own cluster, which has no device to keep it.
  static core::RefCountPtr<GraphHistory> Of(const std::string& session_handle,
                                            const DeviceSet& devices);

  // Deletes what is remembered of the session with this handle, if anything.
  // For sessions that end before their devices do.
  static void Forget(const std::string& session_handle,
                     const DeviceSet& devices);

  // Tells the nodes that the session had when its stages began to run. Null if
  // they have not.
  NodeFilter FilterIfRunning(const DeviceSet& devices) const
      TF_LOCKS_EXCLUDED(mu_);

  // To be called with the session's graph before it is rewritten, unless the
  // stages are running.
  void RememberNodes(const Graph& graph) TF_LOCKS_EXCLUDED(mu_);

  // To be called with the session's graph after it was rewritten.
  void RememberBuffers(const Graph& graph) TF_LOCKS_EXCLUDED(mu_);

  // To be called with the graph of each run. Tells the history of the run's
  // session, whichever that is, which buffers are used: from then on records of
  // that cut may be in them. Buffers may be in other processes, and in devices
  // that only the run knows, so that whether they exist cannot be seen.
  static void NoteRun(const Graph& graph, const DeviceSet& devices);

  std::string DebugString() const override { return "Staging graph history"; }

 private:
  using Names = absl::flat_hash_set<std::string>;

  bool AnyBufferIsUsed(const DeviceSet& devices) const
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable mutex mu_;
  std::shared_ptr<const Names> nodes_ TF_GUARDED_BY(mu_);
  std::vector<BufferKey> buffers_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SESSION_GRAPH_HISTORY_H_
