// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_THREADS_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_THREADS_H_

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace tensorflow {
namespace staging {

// The threads of staged runs on a worker of a distributed session. A worker has
// one pool of inter-op threads for all runs of all sessions. Here a graph with
// a Put gets RegionThreads if it may call Python, so that its runs do not wait
// in the pool that the steps need.
//
// The producers are in the client's process, so the worker knows a stage's graph
// by its Put: what a region computes on further workers runs on their pools.
//
// `item` identifies a registered graph. Thread-safe.

// Notes that `item` is `graph`, with all that its functions call.
void NoteWorkerGraph(const void* item, const Graph& graph);

// Forgets `item`, whose runs have all ended.
void ForgetWorkerGraph(const void* item);

// Returns the runner for a run of `item`, or nullptr if the run belongs on
// `pool`, because it is not a staged run or cannot call Python. Up to one
// thread more than the pool has run its ops.
Executor::Args::Runner WorkerRunner(const void* item,
                                    const thread::ThreadPool& pool);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_THREADS_H_
