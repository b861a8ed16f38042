// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/step_producers.h"

#include <algorithm>
#include <chrono>  // NOLINT
#include <thread>  // NOLINT
#include <utility>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"
#include "tensorflow_staging/core/framework/thread_name.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

// How long Stop lets reads end by themselves: a dataset whose read is cancelled
// may seem to be at its end from then on.
constexpr std::chrono::milliseconds kReadPatience(50);

// How long Stop waits for a thread in code that cannot be cancelled.
constexpr std::chrono::milliseconds kStopPatience(1500);

}  // namespace

std::shared_ptr<StepProducers> StepProducers::Start(
    core::RefCountPtr<StepBuffer> buffer, int num_threads, RunRegion run_region,
    std::shared_ptr<StepTuning> tuning) {
  std::shared_ptr<StepProducers> producers(new StepProducers(
      std::move(buffer), std::move(run_region), std::move(tuning)));
  producers->buffer_->Resume();
  const auto notify = [weak = std::weak_ptr<StepProducers>(producers)] {
    if (const auto strong = weak.lock()) {
      mutex_lock l(strong->mu_);
      strong->changed_.NotifyAll();
    }
  };
  producers->buffer_->WhenWanted(notify);
  producers->buffer_->order()->WhenChanged(notify);
  producers->UseThreads(
      producers->TunesThreads() ? producers->tuning_->threads() : num_threads);
  return producers;
}

void StepProducers::UseThreads(int number) {
  mutex_lock l(mu_);
  if (stopping_ || number == in_use_) return;
  in_use_ = number;
  for (; started_ < number; ++started_) {
    ++threads_;
    std::thread([self = shared_from_this(), index = started_] {
      self->Work(index);
    }).detach();
  }
  changed_.NotifyAll();
}

void StepProducers::Work(int index) {
  const ScopedStageThread thread(buffer_->name());
  while (Produce(index)) {
  }
  {
    mutex_lock l(mu_);
    if (--threads_ > 0) {
      changed_.NotifyAll();
      return;
    }
  }
  // The last one.
  buffer_->GiveBackRecords();
  mutex_lock l(mu_);
  has_given_back_ = true;
  changed_.NotifyAll();
}

bool StepProducers::MayBegin() const {
  const int64_t allowed = buffer_->allowed();
  return buffer_->order()->MayBegin() &&
         (allowed == StepBuffer::kNoLimit ||
          buffer_->TakenOrHeld() + beginning_ < allowed);
}

bool StepProducers::Produce(int index) {
  RunOrder* const order = buffer_->order();
  const uint64_t producer = index + 1;
  {
    mutex_lock l(mu_);
    while (!stopping_ && (index >= in_use_ || !MayBegin())) {
      changed_.Wait(&mu_);
    }
    if (stopping_) return false;
    ++beginning_;
    order->Begin(producer);
  }
  const bool was_admitted = RunOnce(producer);
  {
    mutex_lock l(mu_);
    --beginning_;
  }
  order->End(producer);
  return was_admitted;
}

bool StepProducers::RunOnce(uint64_t producer) {
  Stage* const stage = buffer_.get();
  auto run = std::make_shared<StagedRun>(tsl::core::GetNewRef(stage), producer);
  if (!run->AwaitAdmission(/*cancellation=*/nullptr).ok()) return false;
  RunOrder* const order = buffer_->order();
  if (!order->SetRun(producer, run)) {
    run->Abandon();
    run->End(errors::Aborted("Another run has failed."));
    return true;
  }
  buffer_->BeginDraws(run->reads());
  const Status status = Run(run);
  // Errors and the end of the data come after the records before them.
  order->AwaitTurn(producer);
  const bool is_stale =
      run->End(status) ||
      (!status.ok() && absl::StrContains(status.message(), kIsStale));
  if (status.ok() && producer == 1 && tuning_ != nullptr) {
    tuning_->OnRecord(number_, times().records, *buffer_);
    if (TunesThreads()) UseThreads(tuning_->threads());
  }
  if (status.ok()) return true;
  // Before the step can see the error and go on.
  order->AbandonLater(producer);
  {
    mutex_lock l(mu_);
    if (is_stale || stopping_) return true;
  }
  buffer_->Close(errors::IsOutOfRange(status) ? OkStatus() : status, producer);
  return true;
}

Status StepProducers::Run(const std::shared_ptr<StagedRun>& run) {
  const tsl::profiler::TraceMe trace([this] {
    return tsl::profiler::TraceMeEncode("StagedRun",
                                        {{"stage", buffer_->name()}});
  });
  CancellationManager cancellation(&cancellation_);
  {
    // The parent may be cancelled while its child is being constructed, which
    // the child then does not notice.
    mutex_lock l(mu_);
    if (stopping_) return errors::Cancelled("The stage is being stopped.");
  }
  const auto began = std::chrono::steady_clock::now();
  Status status;
  {
    const ScopedStagedRun staged(&cancellation, run);
    status = run_region_(&cancellation);
  }
  const auto took = std::chrono::steady_clock::now() - began;
  mutex_lock l(mu_);
  if (status.ok()) {
    ++times_.records;
    times_.micros +=
        std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  }
  return status;
}

void StepProducers::SetLimit(int64_t steps) {
  buffer_->SetLimit(steps);
  mutex_lock l(mu_);
  changed_.NotifyAll();
}

void StepProducers::Continue() {
  buffer_->Resume();
  {
    mutex_lock l(mu_);
    if (!stopping_) return;
  }
  // Stop may have cancelled the buffer before Resume opened it.
  buffer_->Cancel();
}

void StepProducers::Stop() {
  mutex_lock l(mu_);
  if (!stopping_) {
    stopping_ = true;
    changed_.NotifyAll();
    mu_.unlock();
    buffer_->Cancel();
    buffer_->order()->Release();
    mu_.lock();
  }
  if (left_behind_ || AwaitThreads(kReadPatience)) return;
  mu_.unlock();
  cancellation_.StartCancel();
  mu_.lock();
  if (AwaitThreads(kStopPatience) || left_behind_) return;
  left_behind_ = true;
  LOG(WARNING) << "Stage '" << buffer_->name() << "' was stopped while its "
               << "region is still running, in code that cannot be "
               << "cancelled. Its thread ends after that run.";
}

bool StepProducers::AwaitThreads(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!has_given_back_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.WaitFor(&mu_, left);
  }
  return true;
}

StepProducers::Times StepProducers::times() const {
  mutex_lock l(mu_);
  return times_;
}

int StepProducers::num_threads() const {
  mutex_lock l(mu_);
  return std::min(threads_, in_use_);
}

}  // namespace staging
}  // namespace tensorflow
