// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_STAGED_RUN_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_STAGED_RUN_H_

#include <atomic>
#include <chrono>  // NOLINT
#include <cstdint>
#include <memory>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/run_order.h"
#include "tensorflow_staging/core/sources/stage.h"

namespace tensorflow {
namespace staging {

// A run of a region, which reads iterators and puts one record. What it has read
// is observed while it runs, so it does not matter how the graph reads: in
// functions, conditionals or loops, or by a handle that is fed.
//
// The ops of a run find it by the cancellation manager, which is the same in
// all functions that the run calls on its device's task. A run in other tasks,
// in a RemoteCall, or of eager code within a Python function, is not observed.
//
// Thread-safe.
class StagedRun {
 public:
  // Begins a run of the producer `producer` of `stage`. `order` is the order in which
  // it has begun; null if its record may come in any order.
  StagedRun(core::RefCountPtr<Stage> stage, ProducerId producer,
            std::shared_ptr<RunOrder> order = nullptr);
  ~StagedRun() { End(OkStatus()); }
  StagedRun(const StagedRun&) = delete;
  StagedRun& operator=(const StagedRun&) = delete;

  // Returns the run to which what `cancellation` cancels belongs, or null.
  static std::shared_ptr<StagedRun> Find(
      const CancellationManager* cancellation);

  Stage* stage() const { return stage_.get(); }
  ProducerId producer() const { return producer_; }

  // Waits until the run may read. Blocks the thread.
  Status AwaitAdmission(CancellationManager* cancellation);
  // The same without blocking.
  void AwaitAdmission(CancellationManager* cancellation, Stage::Done done);
  bool is_admitted() const {
    return is_admitted_.load(std::memory_order_acquire);
  }

  // What it has read.
  const std::shared_ptr<ReadSet>& reads() const { return reads_; }
  // Whether what the run puts would be stale.
  bool IsStale() const {
    return reads_->is_stale() || discards_ != stage_->discards();
  }
  // What a stale run fails with.
  Status StaleStatus() const;

  // The run is in an iterator's GetNext from here on, unless another read or a take
  // has failed it: returns that failure.
  Status EnterRead() TF_LOCKS_EXCLUDED(mu_);
  void LeaveRead() TF_LOCKS_EXCLUDED(mu_);
  // Waits until no other read is in one. An error cancels the run, and a cancelled
  // run cancels for good the iterators that it is reading.
  void AwaitReads() TF_LOCKS_EXCLUDED(mu_);
  // The same for a while at most, before a read or a take fails with `failure`.
  // Later reads fail with it, too.
  void Fail(const Status& failure) TF_LOCKS_EXCLUDED(mu_);

  // It reads and draws no more.
  void EndReads();
  // Calls `put`, which puts its record, when it is its turn. Its producer must be
  // ordered.
  void PutInTurn(RunOrder::PutRecord put);
  void NotePut() { has_put_ = true; }
  // The stage knows that the run is over: it has put its record, or waits for room
  // for it.
  void NoteOver() { is_over_ = true; }

  // Ends the run, which ended with `status`. Returns whether it failed only
  // because it is stale; then it is to be repeated.
  bool End(const Status& status);

 private:
  // Waits until no read is in progress, or until the deadline.
  void AwaitReads(std::chrono::steady_clock::time_point deadline)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const core::RefCountPtr<Stage> stage_;
  const ProducerId producer_;
  const std::shared_ptr<RunOrder> order_;
  const int64_t discards_;
  const std::shared_ptr<ReadSet> reads_;
  std::atomic<bool> is_admitted_{false};
  std::atomic<bool> has_put_{false};
  std::atomic<bool> is_over_{false};
  std::atomic<bool> has_ended_{false};

  mutable mutex mu_;
  // Of who waits for reads; null if nobody does.
  std::unique_ptr<SteadyCondition> left_ TF_GUARDED_BY(mu_);
  // Reads in progress, and what has failed one.
  int inside_ TF_GUARDED_BY(mu_) = 0;
  Status failure_ TF_GUARDED_BY(mu_);
};

// What `cancellation` cancels belongs to `run`, which may be null, in the
// lifetime of this object.
class ScopedStagedRun {
 public:
  ScopedStagedRun(const CancellationManager* cancellation,
                  std::shared_ptr<StagedRun> run);
  ~ScopedStagedRun();
  ScopedStagedRun(const ScopedStagedRun&) = delete;
  ScopedStagedRun& operator=(const ScopedStagedRun&) = delete;

 private:
  // Null if the run is not staged.
  const CancellationManager* cancellation_ = nullptr;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_STAGED_RUN_H_
