// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/staged_run.h"

#include <chrono>  // NOLINT
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/sources/address_map.h"
#include "tensorflow_staging/core/sources/run_holds.h"

namespace tensorflow {
namespace staging {
namespace {

// The runs in progress, by cancellation manager, and how many there are.
AddressMap<StagedRun>* Runs() {
  static auto* const runs = new AddressMap<StagedRun>;
  return runs;
}

std::atomic<int> num_runs{0};

// How long a failure waits for slower reads. Chosen, not measured: longer than
// most reads take, and shorter than a person waits for an error.
constexpr std::chrono::milliseconds kMostWait(2000);

}  // namespace

StagedRun::StagedRun(core::RefCountPtr<SourceReader> stage, uint64_t producer)
    : stage_(std::move(stage)),
      producer_(producer),
      admitted_at_(Source::Now()),
      is_of_new_stage_(stage_->IsNew()),
      keeps_elements_(stage_->KeepsElements()) {
  const RunBegin begin = stage_->BeginRun(producer_);
  is_admitted_ = begin == RunBegin::kAdmitted;
  is_refused_ = begin == RunBegin::kRefused;
}

std::shared_ptr<StagedRun> StagedRun::Find(
    const CancellationManager* cancellation) {
  if (num_runs.load(std::memory_order_acquire) == 0) return nullptr;
  return Runs()->Find(cancellation);
}

Status StagedRun::AwaitAdmission(CancellationManager* cancellation) {
  if (is_admitted()) return OkStatus();
  Status admitted;
  Notification done;
  AwaitAdmission(cancellation, [&admitted, &done](const Status& status) {
    admitted = status;
    done.Notify();
  });
  done.WaitForNotification();
  return admitted;
}

void StagedRun::AwaitAdmission(CancellationManager* cancellation,
                               SourceReader::Done done) {
  if (is_admitted()) {
    done(OkStatus());
    return;
  }
  // It has read nothing yet, so it may read what changes until it is admitted.
  stage_->AwaitRun(
      producer_, cancellation, &admitted_at_,
      [this, done = std::move(done)](const Status& status) mutable {
        if (status.ok() && is_admitted_.exchange(true)) {
          // Another read of the run has waited, too.
          stage_->EndRun({producer_, {}, /*has_put=*/true});
        }
        done(status);
      });
}

Status StagedRun::AddReads(const ReadSet& reads) {
  {
    mutex_lock l(mu_);
    reads_.Add(reads);
    if (reads_.HasSeveralSources()) stage_->NoteReadsSeveral();
  }
  for (const auto& [source, version] : reads) {
    core::RefCountPtr<RunHolds> saving;
    std::vector<SourceReader::Due> due;
    TF_RETURN_IF_ERROR(MayRead(source.get(), &saving, &due));
    // As for a read (IteratorRead::Begin). A run that changes the source may go on
    // to change others of the stage.
    core::RefCountPtr<RunHolds> holds = source->changing();
    if (holds == nullptr && keeps_elements_) holds = std::move(saving);
    if (holds != nullptr) {
      due.push_back(holds->Hold(stage_.get()));
      Abandon();
    } else if (saving != nullptr) {
      // The save has what this run has taken as a record of the stage before.
      saving->ClaimRecords(stage_->name(), source.get());
    }
    for (SourceReader::Due& callback : due) callback();
  }
  return OkStatus();
}

Status StagedRun::MayRead(Source* source, core::RefCountPtr<RunHolds>* saving,
                          std::vector<SourceReader::Due>* due) {
  std::vector<Source::Waiting> waiting;
  source->AddReader(stage_.get(), saving);
  TF_RETURN_IF_ERROR(source->TakeWaiting(stage_.get(), &waiting, saving));
  for (auto& [records, reads, restored_in] : waiting) {
    due->push_back(
        stage_->OnSourceChanged(restored_in, std::move(records), reads));
  }
  return OkStatus();
}

void StagedRun::AddRead(const std::shared_ptr<Source>& source,
                        int64_t version) {
  reads_.Add(source, version);
  if (reads_.HasSeveralSources()) stage_->NoteReadsSeveral();
}

void StagedRun::NoteHandle(const std::shared_ptr<Source>& source) {
  mutex_lock l(mu_);
  handles_.Add(source, source->version());
  if (handles_.HasSeveralSources()) stage_->NoteReadsSeveral();
}

ReadSet StagedRun::reads() const {
  mutex_lock l(mu_);
  return reads_;
}

void StagedRun::Keep(ReadElement element) {
  mutex_lock l(mu_);
  elements_.push_back(std::move(element));
}

std::vector<ReadElement> StagedRun::elements() const {
  mutex_lock l(mu_);
  return elements_;
}

bool StagedRun::MayPutBack(const ReadSet& reads) const {
  if (keeps_elements_) return true;
  for (const auto& [source, version] : reads) {
    if (source->changed_at() > admitted_at_) return true;
  }
  return false;
}

void StagedRun::KeepTaken(absl::AnyInvocable<void()> put_back) {
  mutex_lock l(mu_);
  if (taken_ == nullptr) taken_ = std::make_shared<PutBacks::element_type>();
  taken_->push_back(std::move(put_back));
}

PutBacks StagedRun::ReleaseTaken() const {
  mutex_lock l(mu_);
  return std::exchange(taken_, nullptr);
}

void StagedRun::Fail(const Status& failure) {
  const auto deadline = std::chrono::steady_clock::now() + kMostWait;
  mutex_lock l(mu_);
  failure_.Update(failure);
  while (inside_ > 0 && std::chrono::steady_clock::now() < deadline) {
    left_.WaitFor(&mu_, kMostWait);
  }
}

bool StagedRun::IsStale() const {
  if (IsDiscarded()) return true;
  mutex_lock l(mu_);
  return is_aborted_ || reads_.IsStale();
}

void StagedRun::Abandon() {
  mutex_lock l(mu_);
  is_aborted_ = true;
}

bool StagedRun::is_abandoned() const {
  mutex_lock l(mu_);
  return is_aborted_;
}

void StagedRun::KeepWait(absl::AnyInvocable<void()> end_wait) {
  mutex_lock l(mu_);
  is_aborted_ |= ends_waits_;
  end_waits_.push_back(std::move(end_wait));
}

void StagedRun::EndWaitsOf(const SourceReader* stage) {
  for (const std::shared_ptr<StagedRun>& run : Runs()->All()) {
    if (run->stage() != stage || !run->is_of_new_stage()) continue;
    std::vector<absl::AnyInvocable<void()>> end_waits;
    {
      mutex_lock l(run->mu_);
      run->ends_waits_ = true;
      if (run->end_waits_.empty()) continue;
      run->is_aborted_ = true;
      end_waits.swap(run->end_waits_);
    }
    for (auto& end_wait : end_waits) end_wait();
  }
}

void StagedRun::AbandonReaders(const SourceReader* stage,
                               const std::set<const Source*>& sources) {
  if (sources.empty()) return;
  for (const std::shared_ptr<StagedRun>& run : Runs()->All()) {
    if (run->stage() == stage && run->keeps_elements() &&
        run->reads().HasAnyOf(sources)) {
      run->Abandon();
    }
  }
}

bool StagedRun::End(const Status& status) {
  if (has_ended_.exchange(true)) return false;
  RunEnd end;
  end.producer = producer_;
  end.has_put = has_put_;
  end.is_stale = !status.ok() && !has_put_ && IsStale();
  const bool is_stale = end.is_stale;
  // What the program discards comes not again.
  const bool is_discarded = IsDiscarded();
  if (is_stale && !is_discarded) PutBackAll(ReleaseTaken());
  if (!end.has_put) {
    mutex_lock l(mu_);
    end.reads = reads_;
    if (!is_discarded) {
      end.unused = {std::move(elements_), std::exchange(taken_, nullptr)};
    }
  }
  if (is_admitted()) stage_->EndRun(std::move(end));
  return is_stale;
}

ScopedStagedRun::ScopedStagedRun(const CancellationManager* cancellation,
                                 std::shared_ptr<StagedRun> run) {
  if (run == nullptr) return;
  cancellation_ = cancellation;
  Runs()->Add(cancellation, std::move(run));
  ++num_runs;
}

ScopedStagedRun::~ScopedStagedRun() {
  if (cancellation_ == nullptr) return;
  Runs()->Remove(cancellation_);
  --num_runs;
}

}  // namespace staging
}  // namespace tensorflow
