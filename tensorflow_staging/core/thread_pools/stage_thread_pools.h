// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_H_

#include <memory>

#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/lib/core/threadpool_options.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

// How a pair of pools is made. Two equal specifications describe the same
// threads.
struct StageThreadPoolsSpec;

// A pair of thread pools, apart from those of the training step, that runs a
// staged part of a graph: one pool schedules its operations, the other splits
// the work within an operation.
//
// Thread-safe. Must outlive every run that uses its options().
class StageThreadPools {
 public:
  explicit StageThreadPools(const StageThreadPoolsSpec& spec);
  ~StageThreadPools();

  StageThreadPools(const StageThreadPools&) = delete;
  StageThreadPools& operator=(const StageThreadPools&) = delete;

  // Both pools, in the form that a session's run takes; owned by this object.
  const thread::ThreadPoolOptions& options() const { return options_; }

 private:
  const std::unique_ptr<thread::ThreadPoolInterface> inter_op_;
  const std::unique_ptr<thread::ThreadPoolInterface> intra_op_;
  const thread::ThreadPoolOptions options_;
};

// Makes the pools of ConfigProto.session_stage_subgraph_thread_pool and hands
// them to `resources`, the resource manager of the client device of a session
// that is about to be made. There they live exactly as long as the session's
// devices. Without any pool in the options nothing is added.
//
// Pools with a global_name are shared by the sessions of the process that ask
// for the same name, numbers and cores at the same time.
//
// Returns INVALID_ARGUMENT if a number of threads is negative, or if this
// process may not use a core.
Status AddStageThreadPools(const SessionOptions& options,
                           ResourceMgr* resources);

// Sets `*pools` to what a run with these options asks for: nullptr if it asks
// for no stage thread pools, which costs one look at its unknown fields;
// otherwise pools that live as long as the session of `resources`.
//
// Returns INVALID_ARGUMENT if the session has no pools of that id, or if the
// run asks for other threads as well; `*pools` is nullptr then.
Status FindStageThreadPools(const RunOptions& run_options,
                            ResourceMgr* resources,
                            const StageThreadPools** pools);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_H_
