// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_STAGED_RUN_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_STAGED_RUN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

class RunHolds;

// A run of a region, which reads sources and puts one record. What it has read
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
  // Begins a run of the producer `producer` of `stage`.
  StagedRun(core::RefCountPtr<SourceReader> stage, uint64_t producer);
  ~StagedRun() { End(OkStatus()); }
  StagedRun(const StagedRun&) = delete;
  StagedRun& operator=(const StagedRun&) = delete;

  // Returns the run to which what `cancellation` cancels belongs, or null.
  static std::shared_ptr<StagedRun> Find(
      const CancellationManager* cancellation);

  SourceReader* stage() const { return stage_.get(); }
  uint64_t producer() const { return producer_; }

  // Whether the stage refuses the run; then the run must not go on.
  bool is_refused() const { return is_refused_; }

  // Waits until the run may read. Blocks the thread.
  Status AwaitAdmission(CancellationManager* cancellation);
  // The same without blocking.
  void AwaitAdmission(CancellationManager* cancellation,
                      SourceReader::Done done);
  bool is_admitted() const {
    return is_admitted_.load(std::memory_order_acquire);
  }

  // The run has taken a record that was made from `reads`. Returns
  // INVALID_ARGUMENT if restored records of the stage do not fit it.
  Status AddReads(const ReadSet& reads) TF_LOCKS_EXCLUDED(mu_);
  ReadSet reads() const TF_LOCKS_EXCLUDED(mu_);
  // Whether to keep the elements that it reads, to give them back.
  bool keeps_elements() const { return keeps_elements_; }
  // Whether the stage was new when it began.
  bool is_of_new_stage() const { return is_of_new_stage_; }
  // It has got the handle of `source`.
  void NoteHandle(const std::shared_ptr<Source>& source) TF_LOCKS_EXCLUDED(mu_);
  // What it has read, if it keeps it.
  void Keep(ReadElement element) TF_LOCKS_EXCLUDED(mu_);
  std::vector<ReadElement> elements() const TF_LOCKS_EXCLUDED(mu_);

  // Whether what the run puts would be stale.
  bool IsStale() const TF_LOCKS_EXCLUDED(mu_);
  // Whether that is because the program has discarded it.
  bool IsDiscarded() const { return admitted_at_ < stage_->discarded_at(); }

  // Whether the run may have to put back a record that was made from `reads`: it
  // keeps elements, or was admitted before these were changed, as it waited for
  // the record. Then a read of what else has changed repeats it.
  bool MayPutBack(const ReadSet& reads) const;
  // Keeps a way to put back the record of another stage that the run has taken.
  void KeepTaken(absl::AnyInvocable<void()> put_back) TF_LOCKS_EXCLUDED(mu_);
  // What it has kept, and keeps no longer.
  PutBacks ReleaseTaken() const TF_LOCKS_EXCLUDED(mu_);

  // A read or a take has failed, and with it the run. That cancels the run, and
  // so for good the iterators that it is reading: waits a while for these reads.
  void Fail(const Status& failure) TF_LOCKS_EXCLUDED(mu_);

  // From here on the run is stale: something else gets what it has read.
  void Abandon() TF_LOCKS_EXCLUDED(mu_);
  bool is_abandoned() const TF_LOCKS_EXCLUDED(mu_);
  // Keeps a way to end a wait for a record of another stage, which begins now.
  void KeepWait(absl::AnyInvocable<void()> end_wait) TF_LOCKS_EXCLUDED(mu_);
  // Abandons the first runs of `stage` that wait for a record of another stage, or
  // will, and ends their waits: the other stage may be held by who pauses this one. From
  // then on, who pauses the other one knows who takes its records.
  static void EndWaitsOf(const SourceReader* stage);

  // Abandons the runs of `stage` that have read any of `sources`, if they can give
  // back what they have read.
  static void AbandonReaders(const SourceReader* stage,
                             const std::set<const Source*>& sources);

  // The run may read `source`: makes the stage a reader, and gives it the records
  // that wait for it. Returns INVALID_ARGUMENT if these do not fit it. Sets
  // `*saving` as Source::AddReader does. Call `due` without locks.
  Status MayRead(Source* source, core::RefCountPtr<RunHolds>* saving,
                 std::vector<SourceReader::Due>* due);

  void NotePut() { has_put_ = true; }

  // Ends the run, which ended with `status`. Returns whether it failed only
  // because a source has changed; then it is to be repeated.
  bool End(const Status& status) TF_LOCKS_EXCLUDED(mu_);

 private:
  friend class IteratorRead;

  void AddRead(const std::shared_ptr<Source>& source, int64_t version)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const core::RefCountPtr<SourceReader> stage_;
  const uint64_t producer_;
  // When the run was admitted, by Source::Now(): it has read nothing before.
  std::atomic<int64_t> admitted_at_;
  std::atomic<bool> is_admitted_{false};
  bool is_refused_ = false;
  const bool is_of_new_stage_;
  const bool keeps_elements_;
  std::atomic<bool> has_put_{false};
  std::atomic<bool> has_ended_{false};

  mutable mutex mu_;
  SteadyCondition left_;
  ReadSet reads_ TF_GUARDED_BY(mu_);
  ReadSet handles_ TF_GUARDED_BY(mu_);
  // Whether it has tried to read a source that had changed or was being saved, or
  // was abandoned.
  bool is_aborted_ TF_GUARDED_BY(mu_) = false;
  // Reads in progress, and what has failed one: no other begins then.
  int inside_ TF_GUARDED_BY(mu_) = 0;
  Status failure_ TF_GUARDED_BY(mu_);
  std::vector<ReadElement> elements_ TF_GUARDED_BY(mu_);
  mutable PutBacks taken_ TF_GUARDED_BY(mu_);
  std::vector<absl::AnyInvocable<void()>> end_waits_ TF_GUARDED_BY(mu_);
  // Whether EndWaitsOf was called for it.
  bool ends_waits_ TF_GUARDED_BY(mu_) = false;
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
