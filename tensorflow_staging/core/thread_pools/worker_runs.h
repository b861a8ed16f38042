// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_RUNS_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_RUNS_H_

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace tensorflow {
namespace staging {

// How a worker of a distributed session runs its part of a stage.
//
// A worker has one pool of inter-op threads for all runs of all sessions. A
// graph with a Put gets RegionThreads if it may call Python, so that its runs
// do not wait in the pool that the steps need. And like the staged runs of a
// local session, its runs do not wait until their GPUs are idle
// (session/sync_on_finish.h).
//
// The producers are in the client's process, so the worker knows a stage's
// graph by its Put: what a region computes on further workers runs as a step
// does.
//
// `item` identifies a registered graph. Thread-safe.

// Notes that `item` is `graph`, with all that its functions call.
void NoteWorkerGraph(const void* item, const Graph& graph);

// Forgets `item`, whose runs have all ended.
void ForgetWorkerGraph(const void* item);

struct WorkerRun {
  // Whether this is a staged run.
  bool is_staged = false;
  // Runs the ops, on up to one thread more than the worker's pool has. Null if
  // they belong on the pool, because the run cannot call Python.
  Executor::Args::Runner runner;
};

// Returns how to run `item`, for which the worker would use `pool`.
WorkerRun WorkerRunOf(const void* item, const thread::ThreadPool& pool);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_RUNS_H_
