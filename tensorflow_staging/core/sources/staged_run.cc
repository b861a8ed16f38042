// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/staged_run.h"

#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/compat/notification.h"
#include "tensorflow_staging/core/sources/address_map.h"
#include "tensorflow_staging/core/sources/roll_back.h"

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

StagedRun::StagedRun(core::RefCountPtr<Stage> stage, ProducerId producer,
                     std::shared_ptr<RunOrder> order)
    : stage_(std::move(stage)),
      producer_{producer.source, producer.number, order != nullptr},
      order_(std::move(order)),
      discards_(stage_->discards()),
      reads_(std::make_shared<ReadSet>(core::WeakPtr<Stage>(stage_.get()))),
      is_admitted_(stage_->BeginRun(producer_)) {
  if (order_ != nullptr) order_->SetReads(producer_.number, reads_);
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
                               Stage::Done done) {
  if (is_admitted()) {
    done(OkStatus());
    return;
  }
  stage_->AwaitRun(
      producer_, cancellation,
      [this, done = std::move(done)](const Status& status) mutable {
        if (status.ok() && is_admitted_.exchange(true)) {
          // Another read of the run has waited, too.
          stage_->EndRun({producer_});
        }
        done(status);
      });
}

Status StagedRun::StaleStatus() const {
  return errors::Aborted("Something else gets what a run of stage '",
                         stage_->name(), "' has read, so it is repeated.");
}

Status StagedRun::EnterRead() {
  mutex_lock l(mu_);
  if (failure_.ok()) ++inside_;
  return failure_;
}

void StagedRun::LeaveRead() {
  mutex_lock l(mu_);
  if (--inside_ == 0 && left_ != nullptr) left_->NotifyAll();
}

void StagedRun::AwaitReads() {
  mutex_lock l(mu_);
  AwaitReads(std::chrono::steady_clock::time_point::max());
}

void StagedRun::Fail(const Status& failure) {
  mutex_lock l(mu_);
  failure_.Update(failure);
  AwaitReads(std::chrono::steady_clock::now() + kMostWait);
}

void StagedRun::AwaitReads(std::chrono::steady_clock::time_point deadline) {
  if (inside_ == 0) return;
  if (left_ == nullptr) left_ = std::make_unique<SteadyCondition>();
  while (inside_ > 0 && std::chrono::steady_clock::now() < deadline) {
    left_->WaitFor(&mu_, kMostWait);
  }
}

void StagedRun::EndReads() {
  // Puts that waited for this may end their runs.
  if (const std::shared_ptr<RunOrder> order = order_) {
    order->EndReads(producer_.number);
  }
}

void StagedRun::PutInTurn(RunOrder::PutRecord put) {
  // The put may end the run, and destroy this object.
  const std::shared_ptr<RunOrder> order = order_;
  order->Put(producer_.number, std::move(put));
}

bool StagedRun::End(const Status& status) {
  if (has_ended_.exchange(true)) return false;
  const bool is_stale = !has_put_ && !status.ok() && IsStale();
  // A discard has not made it stale for what it holds of its iterators.
  if (is_stale) GiveBack(reads_);
  if (is_admitted() && !is_over_) {
    stage_->EndRun(
        {producer_, reads_, has_put_ || is_stale, status, discards_});
  }
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
