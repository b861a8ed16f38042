// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_SESSION_POOLS_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_SESSION_POOLS_H_

#include <chrono>  // NOLINT
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/thread_pools/keyed_turns.h"
#include "tensorflow_staging/core/thread_pools/stage_thread_pools.h"

namespace tensorflow {
namespace staging {

// The stage thread pools of one distributed session in one of the processes
// that run its graphs. The first run that asks for a pool creates it.
//
// The registered graphs of the session own this object, so the pools end with
// the session. A worker does not hear of the end of a client or a master that
// was killed, and keeps its graphs; it hears only that the runs are cancelled.
// A pool is therefore released when a run on it was cancelled, as the runs of a
// stage that stops are. One that no run has used for a while is released when
// any session needs a new one. If a run asks for it after all, it is created
// again.
//
// Thread-safe.
class WorkerSessionPools {
 public:
  // Sets `*pools` to the pools of the session `handle`, or to null if its
  // configuration has none. Each graph of a session comes with its
  // configuration; the first one counts.
  //
  // Returns INVALID_ARGUMENT if the fields of the pools are malformed.
  static Status OfSession(const std::string& handle, const ConfigProto& config,
                          std::shared_ptr<WorkerSessionPools>* pools);

  // Releases the pools of all sessions that have no run, and have had none for
  // this time.
  static void ReleaseUnused(std::chrono::milliseconds time);

  ~WorkerSessionPools();
  WorkerSessionPools(const WorkerSessionPools&) = delete;
  WorkerSessionPools& operator=(const WorkerSessionPools&) = delete;

  // Sets `*pools` to those of index `id`. The run holds them until it ends.
  //
  // Returns the errors of CreateStageThreadPools.
  Status Find(int id, std::shared_ptr<StageThreadPools>* pools)
      TF_LOCKS_EXCLUDED(mu_);

  // Lets the pools of index `id` end with the last run on them, unless another
  // session shares them.
  void Release(int id) TF_LOCKS_EXCLUDED(mu_);

 private:
  using Clock = std::chrono::steady_clock;

  struct Pool {
    std::shared_ptr<StageThreadPools> pools;
    Clock::time_point last_run;
  };

  WorkerSessionPools(const std::string& handle, const ConfigProto& config);

  // Returns whether there is a pool `id`; it then counts as used.
  bool FindKnown(int id, std::shared_ptr<StageThreadPools>* pools)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Moves the pools without a run since `limit` to `*unused`.
  void TakeUnused(Clock::time_point limit,
                  std::vector<std::shared_ptr<StageThreadPools>>* unused)
      TF_LOCKS_EXCLUDED(mu_);

  const std::string handle_;
  const SessionOptions options_;

  // Those of runs that create pools, by index.
  KeyedTurns<int> turns_;
  mutex mu_;
  std::map<int, Pool> pools_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_WORKER_SESSION_POOLS_H_
