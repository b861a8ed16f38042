// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_H_

#include <functional>
#include <memory>
#include <utility>

#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/lib/core/threadpool_options.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

// The parameters of a pair of pools. Equal specifications describe the same
// threads.
struct StageThreadPoolsSpec;

// A pair of thread pools that runs a region, apart from the pools of the
// training step: the inter-op pool runs its ops, and the intra-op pool shares
// the work of one op.
//
// Thread-safe. Must outlive every run that uses its options().
class StageThreadPools {
 public:
  // Returns RESOURCE_EXHAUSTED if all pools of the process would have too many
  // threads together, or if the process cannot start these.
  static Status Create(const StageThreadPoolsSpec& spec,
                       std::shared_ptr<StageThreadPools>* pools);
  ~StageThreadPools();

  StageThreadPools(const StageThreadPools&) = delete;
  StageThreadPools& operator=(const StageThreadPools&) = delete;

  // Both pools, in the form that a session's run accepts. This object owns
  // them.
  const thread::ThreadPoolOptions& options() const { return options_; }

  // Returns what schedules closures on the inter-op pool. It may be used after
  // the run that got it, as iterators do, while this object lives.
  std::function<void(std::function<void()>)> Runner() const {
    return
        [pool = options_.inter_op_threadpool](std::function<void()> closure) {
          pool->Schedule(std::move(closure));
        };
  }

 private:
  explicit StageThreadPools(const StageThreadPoolsSpec& spec);

  // Deletes `pools`, from another thread if the calling one is theirs: no
  // thread can wait for its own end.
  static void End(StageThreadPools* pools);

  const std::unique_ptr<thread::ThreadPoolInterface> inter_op_;
  const std::unique_ptr<thread::ThreadPoolInterface> intra_op_;
  const thread::ThreadPoolOptions options_;
};

// Creates the pools of ConfigProto.session_stage_subgraph_thread_pool for a
// session that is about to be created, and adds them to `resources`, the
// resource manager of its client device. The pools live exactly as long as the
// session's devices. Adds nothing if the options have no pools.
//
// Sessions of the process share a pool with a global_name if they exist at the
// same time and ask for the same name, numbers of threads and cores.
//
// Returns INVALID_ARGUMENT if no pool can have a number of threads, or if
// cpu_affinity has a core that this process may not use, and RESOURCE_EXHAUSTED
// as StageThreadPools::Create does.
Status AddStageThreadPools(const SessionOptions& options,
                           ResourceMgr* resources);

// Returns INVALID_ARGUMENT if a number of threads in
// ConfigProto.session_stage_subgraph_thread_pool is one that no pool can have,
// in whichever process the pools will be.
Status CheckStageThreadPoolSizes(const ConfigProto& config);

// Creates or shares the pools of index `id` in
// ConfigProto.session_stage_subgraph_thread_pool, for one session. `*pools` may
// be released in any thread.
//
// Returns INVALID_ARGUMENT if there is no such index, and otherwise the errors
// of AddStageThreadPools.
Status CreateStageThreadPools(const SessionOptions& options, int id,
                              std::shared_ptr<StageThreadPools>* pools);

// Returns the error of a run that asks for pools `id` of a session that has
// only `size` of them.
Status NoSuchStageThreadPools(int id, int size);

// Returns INVALID_ARGUMENT if a run that asks for a stage thread pool also asks
// for other threads.
Status CheckAsksForNoOtherThreads(const RunOptions& run_options);

// Sets `*pools` to the pools that `run_options` asks for; they live as long as
// the session of `resources`. If the run asks for none, sets `*pools` to
// nullptr, at the cost of one look at the unknown fields.
//
// Returns INVALID_ARGUMENT if the session has no pools of that id, or if the
// run also asks for other threads; `*pools` is then nullptr.
Status FindStageThreadPools(const RunOptions& run_options,
                            ResourceMgr* resources,
                            const StageThreadPools** pools);

// Returns how many pools with a global_name the process knows; for tests.
int CountSharedStageThreadPools();

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_H_
