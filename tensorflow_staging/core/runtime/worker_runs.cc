// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/worker_runs.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/stale_run_error.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/runtime/kept_devices.h"
#include "tensorflow_staging/core/runtime/region_ops.h"
#include "tensorflow_staging/core/runtime/region_threads.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/sources/staged_run.h"
#include "tensorflow_staging/core/thread_pools/worker_session_pools.h"

namespace tensorflow {
namespace staging {
namespace {

using Pools = std::shared_ptr<StageThreadPools>;

// Where the buffer of a stage is.
struct BufferPlace {
  ResourceMgr* manager = nullptr;
  std::string container;
  std::string name;
};

// What is known of a graph.
struct WorkerGraph {
  // Whether it has a Put.
  bool is_staged = false;
  // That of the Put; no manager if there are Puts of several stages.
  BufferPlace buffer;
  // Whether the ops and functions of a staged graph call Python.
  bool calls_python = false;
  // Whether it is staged and only moves records.
  bool only_moves_records = false;
  // Null if the graph is not staged or cannot call Python. It can if it uses an
  // iterator to which another run gives a dataset that does.
  std::shared_ptr<RegionThreads> threads;
  // Null if its session has none.
  std::shared_ptr<WorkerSessionPools> pools;
  bool keeps_device = false;
};

// The graphs with a Put, and all graphs of sessions with stage thread pools.
struct WorkerGraphs {
  mutex mu;
  std::unordered_map<const void*, std::shared_ptr<const WorkerGraph>> by_item
      TF_GUARDED_BY(mu);
};

WorkerGraphs* GetGraphs() {
  static auto* const graphs = new WorkerGraphs;
  return graphs;
}

// Returns what is known of `item`; null if it has neither a Put nor pools.
std::shared_ptr<const WorkerGraph> FindGraph(const void* item) {
  WorkerGraphs* const graphs = GetGraphs();
  tf_shared_lock l(graphs->mu);
  const auto found = graphs->by_item.find(item);
  return found == graphs->by_item.end() ? nullptr : found->second;
}

// Whether a dataset that calls Python has been given to an iterator, of any
// session. The master sends each graph with only the functions that it names, so
// the graph that uses the iterator does not show those of the dataset. Stays
// true: iterators keep their datasets.
std::atomic<bool> has_python_dataset{false};

bool HasOp(const Graph& graph, absl::Span<const char* const> ops) {
  const auto nodes = graph.op_nodes();
  return absl::c_any_of(nodes, [ops](const Node* node) {
    return absl::c_linear_search(ops, node->type_string());
  });
}

// Returns where the buffer of the Puts of `graph` is.
BufferPlace BufferOfPuts(const Graph& graph, const DeviceMgr& devices) {
  std::optional<BufferKey> key;
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferPut(*node)) continue;
    const std::optional<BufferKey> buffer = BufferOf(*node);
    if (key.has_value() && !(buffer == key)) return {};
    key = buffer;
  }
  Device* const cpu = devices.HostCPU();
  if (!key.has_value() || cpu == nullptr) return {};
  ResourceMgr* const manager = cpu->resource_manager();
  return {
      manager,
      key->container.empty() ? manager->default_container() : key->container,
      key->name};
}

// Returns the stage of a graph; null if it has no Put, or no op of the stage has
// run yet.
core::RefCountPtr<Stage> StageOf(const WorkerGraph& graph) {
  const BufferPlace& place = graph.buffer;
  TensorBuffer* buffer = nullptr;
  if (place.manager == nullptr ||
      !place.manager->Lookup(place.container, place.name, &buffer).ok()) {
    return nullptr;
  }
  return core::RefCountPtr<Stage>(buffer);
}

// Whether the calling thread begins a run.
thread_local bool begins_run = false;

// The pools of the run that the calling thread begins; null outside any scope.
thread_local const Pools* current_pools = nullptr;

// The pools that a run has chosen.
struct Choice {
  Pools pools;  // Null if it has chosen none.
  std::shared_ptr<WorkerSessionPools> session;
  int id = 0;
};

Status FindPools(const WorkerGraph* graph, const ExecutorOpts& options,
                 Choice* choice) {
  RunFields fields;
  TF_RETURN_IF_ERROR(DecodeRunFields(options, &fields));
  if (!fields.use_stage_subgraph_thread_pool()) return OkStatus();
  choice->id = fields.stage_subgraph_thread_pool_id();
  if (graph != nullptr) choice->session = graph->pools;
  if (choice->session == nullptr) return NoSuchStageThreadPools(choice->id, 0);
  return choice->session->Find(choice->id, &choice->pools);
}

// Returns what schedules closures on `pools` while these live, and on `pool`
// afterwards.
Executor::Args::Runner RunnerOf(const Pools& pools, thread::ThreadPool* pool) {
  return [weak = std::weak_ptr<StageThreadPools>(pools),
          pool](std::function<void()> closure) {
    Pools pools = weak.lock();
    if (pools == nullptr) {
      pool->Schedule(std::move(closure));
      return;
    }
    thread::ThreadPoolInterface* const inter_op =
        pools->options().inter_op_threadpool;
    // The pools live until the closure has run.
    inter_op->Schedule([pools = std::move(pools),
                        closure = std::move(closure)]() { closure(); });
  };
}

// Makes the run of `item` that `cancellation` cancels a staged run until `*done`
// is called, if its graph belongs to a stage.
void BeginStagedRun(const void* item, const WorkerGraph& graph,
                    const CancellationManager* cancellation,
                    std::function<void(const Status&)>* done) {
  core::RefCountPtr<Stage> stage = StageOf(graph);
  if (stage == nullptr) return;
  const std::string name = stage->name();
  const ProducerId producer(reinterpret_cast<std::uintptr_t>(item),
                            /*number=*/0);
  const auto run = std::make_shared<StagedRun>(std::move(stage), producer);
  auto scope = std::make_shared<ScopedStagedRun>(cancellation, run);
  *done = [name, run, scope = std::move(scope),
           done = std::move(*done)](const Status& status) mutable {
    scope.reset();
    done(run->End(status) ? StaleRunError(name) : status);
  };
}

}  // namespace

Status NoteWorkerGraph(const void* item, const std::string& session_handle,
                       const ConfigProto& config, const Graph& graph,
                       const DeviceMgr& devices) {
  WorkerGraph worker_graph;
  TF_RETURN_IF_ERROR(WorkerSessionPools::OfSession(session_handle, config,
                                                   &worker_graph.pools));
  worker_graph.is_staged = HasOp(graph, {kPutOp});
  worker_graph.buffer = BufferOfPuts(graph, devices);
  const bool initializes = HasOp(graph, kIteratorInitializerOps);
  if (worker_graph.is_staged || initializes) {
    worker_graph.calls_python = MayCallPython(graph, graph.flib_def());
  }
  if (initializes && worker_graph.calls_python) has_python_dataset = true;
  if (worker_graph.is_staged &&
      (worker_graph.calls_python || UsesIteratorOfOtherRun(graph))) {
    worker_graph.threads = RegionThreads::Create(/*producers=*/1);
  }
  worker_graph.only_moves_records =
      worker_graph.is_staged && OnlyMovesRecords(graph);
  worker_graph.keeps_device = KeepsDevice(graph);
  if (worker_graph.is_staged || worker_graph.pools != nullptr) {
    auto noted = std::make_shared<const WorkerGraph>(std::move(worker_graph));
    WorkerGraphs* const graphs = GetGraphs();
    mutex_lock l(graphs->mu);
    graphs->by_item[item] = std::move(noted);
  }
  return OkStatus();
}

void ForgetWorkerGraph(const void* item) {
  WorkerGraphs* const graphs = GetGraphs();
  // Ends threads and pools without the lock.
  std::shared_ptr<const WorkerGraph> graph;
  {
    mutex_lock l(graphs->mu);
    auto forgotten = graphs->by_item.extract(item);
    if (forgotten.empty()) return;
    graph = std::move(forgotten.mapped());
  }
  if (graph->threads != nullptr) graph->threads->Retire();
}

ScopedRunBegin::ScopedRunBegin() : begins_run_(&begins_run, true) {}

Executor::Args::Runner RunnerInBeginner(thread::ThreadPool* pool) {
  return
      [pool, in_caller = RunnerInCaller(pool)](std::function<void()> closure) {
        if (begins_run) {
          in_caller(std::move(closure));
        } else {
          pool->Schedule(std::move(closure));
        }
      };
}

ScopedWorkerRun::ScopedWorkerRun(const void* item, const ExecutorOpts& options,
                                 const CancellationManager* cancellation,
                                 std::function<void(const Status&)>* done)
    : current_(&current_pools, &pools_) {
  const auto graph = FindGraph(item);
  if (graph != nullptr) BeginStagedRun(item, *graph, cancellation, done);
  Choice choice;
  status_ = FindPools(graph.get(), options, &choice);
  pools_ = choice.pools;
  if (pools_ == nullptr) return;
  *done = [choice = std::move(choice),
           done = std::move(*done)](const Status& status) {
    if (errors::IsCancelled(status)) choice.session->Release(choice.id);
    done(status);
  };
}

WorkerRun WorkerRunOf(const void* item, thread::ThreadPool* pool) {
  WorkerRun run;
  const auto graph = FindGraph(item);
  if (graph == nullptr) return run;
  run.is_staged = graph->is_staged;
  if (current_pools != nullptr && *current_pools != nullptr) {
    run.runner = RunnerOf(*current_pools, pool);
    if (!graph->keeps_device) {
      run.intra_op_threadpool = (*current_pools)->options().intra_op_threadpool;
    }
  } else if (graph->threads != nullptr &&
             (graph->calls_python || has_python_dataset)) {
    run.runner = graph->threads->RunnerInsteadOf(*pool);
  } else if (graph->only_moves_records && RunsInCaller()) {
    run.runner = RunnerInBeginner(pool);
  }
  return run;
}

}  // namespace staging
}  // namespace tensorflow
