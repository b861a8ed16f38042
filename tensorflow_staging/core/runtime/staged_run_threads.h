// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_STAGED_RUN_THREADS_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_STAGED_RUN_THREADS_H_

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/base/call_once.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow_staging/core/runtime/region_ops.h"
#include "tensorflow_staging/core/runtime/region_threads.h"
#include "tensorflow_staging/core/runtime/staged_call.h"

namespace tensorflow {
namespace staging {

// Chooses the threads on which the staged runs of one source compute in a local
// session: on RegionThreads if they may call Python, because Python may wait
// for anything, also for what the step does; otherwise on the session's
// inter-op threads, which are often awake already. Of a run that only moves
// records, the thread that begins it computes what it can at once: to hand that
// to another thread costs more than to do it.
//
// All of its runs execute the same callable. Thread-safe.
class StagedRunThreads {
 public:
  StagedRunThreads() : threads_(RegionThreads::Create(/*producers=*/0)) {}

  StagedRunThreads(const StagedRunThreads&) = delete;
  StagedRunThreads& operator=(const StagedRunThreads&) = delete;

  // Returns what schedules the ops of the session's run that the calling thread
  // begins. Returns null if that run computes on `pool` alone.
  //
  // `pool` has the inter-op threads of the session; if it is null, the run uses
  // its caller's thread alone. `partitions` is what the run executes:
  // DirectSession's list of executors, each with its graph and its function
  // library. A session that does not keep the graphs has null ones, which may
  // call Python.
  //
  // Each run calls this once: a session that an op of the region runs in the
  // same thread is another run.
  template <typename Partitions>
  static Executor::Args::Runner RunnerOfThisRun(thread::ThreadPool* pool,
                                                const Partitions& partitions) {
    StagedRunThreads* const run = TakeStagedRunThreads();
    if (run == nullptr || pool == nullptr) return nullptr;
    absl::call_once(run->searched_, [run, &partitions]() {
      run->may_call_python_ =
          absl::c_any_of(partitions, [](const auto& partition) {
            return partition.graph == nullptr ||
                   MayCallPython(
                       *partition.graph,
                       *partition.flib->GetFunctionLibraryDefinition());
          });
      if (run->may_call_python_) return;
      int reads = 0;
      for (const auto& partition : partitions) {
        if (!OnlyMovesRecords(*partition.graph)) return;
        reads += NumReads(*partition.graph);
      }
      run->in_caller_ = reads <= 1 ? InCaller::kAll : InCaller::kAllButReads;
    });
    if (run->may_call_python_) return run->threads_->RunnerInsteadOf(*pool);
    if (run->in_caller_ == InCaller::kNothing) return nullptr;
    if (run->in_caller_ == InCaller::kAll) AllowReadInCaller();
    return RunnerInCaller(pool);
  }

  // Lets one more run take place at the same time. Must be called before the
  // first one.
  void AddProducer() { threads_->AddProducer(); }

  // Ends the threads; see RegionThreads::Retire.
  void Retire() { threads_->Retire(); }

 private:
  // What of a run the thread that begins it may compute.
  enum class InCaller { kNothing, kAllButReads, kAll };

  const std::shared_ptr<RegionThreads> threads_;
  absl::once_flag searched_;
  // What the search of the callable's graph has found.
  bool may_call_python_ = false;
  InCaller in_caller_ = InCaller::kNothing;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_STAGED_RUN_THREADS_H_
