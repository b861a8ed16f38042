// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/worker_runs.h"

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
  // Whether its own ops and functions call Python.
  bool calls_python;
  // Null if the graph cannot call Python. It can if it uses an iterator to
  // which another run gives a dataset that does.
  std::shared_ptr<RegionThreads> threads;
};

// The graphs with a Put.
class StagedGraphs {
 public:
  static StagedGraphs* Get() {
    static auto* const graphs = new StagedGraphs;
    return graphs;
  }

  void Add(const void* item, StagedGraph graph) {
    mutex_lock l(mu_);
    graphs_[item] = std::move(graph);
  }

  // Notes that a dataset that calls Python is given to an iterator. The master
  // sends each graph with only the functions that it names, so the graph that
  // uses the iterator does not show those of the dataset.
  void AddPythonDataset() {
    mutex_lock l(mu_);
    has_python_dataset_ = true;
  }

  // Returns whether `item` has a Put. Sets `*threads` to those of its runs, or
  // to null if these belong on the worker's pool.
  bool Find(const void* item, std::shared_ptr<RegionThreads>* threads) {
    tf_shared_lock l(mu_);
    const auto found = graphs_.find(item);
    if (found == graphs_.end()) return false;
    const StagedGraph& graph = found->second;
    if (graph.calls_python || has_python_dataset_) *threads = graph.threads;
    return true;
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
    if (threads != nullptr) threads->Retire();
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
  if (is_staged) {
    StagedGraph staged{calls_python, nullptr};
    if (calls_python || UsesIteratorOfOtherRun(graph)) {
      staged.threads = RegionThreads::Create(/*producers=*/1);
    }
    StagedGraphs::Get()->Add(item, std::move(staged));
  }
  if (initializes && calls_python) StagedGraphs::Get()->AddPythonDataset();
}

void ForgetWorkerGraph(const void* item) { StagedGraphs::Get()->Remove(item); }

WorkerRun WorkerRunOf(const void* item, const thread::ThreadPool& pool) {
  WorkerRun run;
  std::shared_ptr<RegionThreads> threads;
  run.is_staged = StagedGraphs::Get()->Find(item, &threads);
  if (threads != nullptr) run.runner = threads->RunnerInsteadOf(pool);
  return run;
}

}  // namespace staging
}  // namespace tensorflow
