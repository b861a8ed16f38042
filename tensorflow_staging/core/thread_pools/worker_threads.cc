// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/worker_threads.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/types/span.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/thread_pools/python_in_graph.h"
#include "tensorflow_staging/core/thread_pools/region_threads.h"

namespace tensorflow {
namespace staging {
namespace {

// What is known of a graph that has a Put.
struct StagedGraph {
  // Whether its own ops and functions call Python. If not, it uses an iterator
  // that another run gives its dataset.
  bool calls_python;
  std::shared_ptr<RegionThreads> threads;
};

// The graphs with a Put that may call Python.
class StagedGraphs {
 public:
  static StagedGraphs* Get() {
    static auto* const graphs = new StagedGraphs;
    return graphs;
  }

  void Add(const void* item, bool calls_python) {
    mutex_lock l(mu_);
    graphs_[item] = {calls_python, RegionThreads::Create(/*producers=*/1)};
  }

  // Notes that a dataset that calls Python is given to an iterator. The master
  // sends each graph with only the functions that it names, so the graph that
  // uses the iterator does not show those of the dataset.
  void AddPythonDataset() {
    mutex_lock l(mu_);
    has_python_dataset_ = true;
  }

  // Returns null if `item` belongs on the worker's pool.
  std::shared_ptr<RegionThreads> Find(const void* item) {
    tf_shared_lock l(mu_);
    const auto found = graphs_.find(item);
    if (found == graphs_.end()) return nullptr;
    const StagedGraph& graph = found->second;
    return graph.calls_python || has_python_dataset_ ? graph.threads : nullptr;
  }

  void Remove(const void* item) {
    std::shared_ptr<RegionThreads> threads;
    {
      mutex_lock l(mu_);
      const auto found = graphs_.find(item);
      if (found == graphs_.end()) return;
      threads = std::move(found->second.threads);
      graphs_.erase(found);
    }
    threads->Retire();
  }

 private:
  mutex mu_;
  std::unordered_map<const void*, StagedGraph> graphs_ TF_GUARDED_BY(mu_);
  // Of any session. Stays true: iterators keep their datasets.
  bool has_python_dataset_ TF_GUARDED_BY(mu_) = false;
};

bool HasOp(const Graph& graph, absl::Span<const char* const> ops) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [ops](const Node* node) {
    return std::find(ops.begin(), ops.end(), node->type_string()) != ops.end();
  });
}

}  // namespace

void NoteWorkerGraph(const void* item, const Graph& graph) {
  const bool is_staged = HasOp(graph, {kPutOp});
  const bool initializes = HasOp(graph, kIteratorInitializerOps);
  if (!is_staged && !initializes) return;
  const bool calls_python = MayCallPython(graph, graph.flib_def());
  if (is_staged && (calls_python || UsesIteratorOfOtherRun(graph))) {
    StagedGraphs::Get()->Add(item, calls_python);
  }
  if (initializes && calls_python) StagedGraphs::Get()->AddPythonDataset();
}

void ForgetWorkerGraph(const void* item) { StagedGraphs::Get()->Remove(item); }

Executor::Args::Runner WorkerRunner(const void* item,
                                    const thread::ThreadPool& pool) {
  const std::shared_ptr<RegionThreads> threads =
      StagedGraphs::Get()->Find(item);
  return threads == nullptr ? nullptr : threads->RunnerInsteadOf(pool);
}

}  // namespace staging
}  // namespace tensorflow
