// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/producers/function_runner.h"

#include <chrono>  // NOLINT
#include <utility>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace staging {
namespace {

// How long Stop lets reads end by themselves: a dataset whose read is cancelled
// may seem to be at its end from then on.
constexpr std::chrono::milliseconds kReadPatience(50);

// What the producers own of `runs`.
ProducersOptions OptionsFor(const std::shared_ptr<FunctionRuns>& runs,
                            int num_threads,
                            std::shared_ptr<StageTuning> tuning) {
  ProducersOptions options;
  options.stage = runs->buffer()->name();
  options.sources.resize(tuning->tunes_threads() ? 1 : num_threads);
  options.tuning = std::move(tuning);
  options.on_last_left = [runs] { runs->buffer()->GiveBackRecords(); };
  return options;
}

}  // namespace

FunctionRunner::FunctionRunner(core::RefCountPtr<StepBuffer> buffer,
                               int num_threads,
                               FunctionRuns::RunRegion run_region,
                               std::shared_ptr<StageTuning> tuning)
    : runs_(std::make_shared<FunctionRuns>(std::move(buffer),
                                           std::move(run_region))),
      producers_(std::make_shared<Producers>(
          OptionsFor(runs_, num_threads, tuning), runs_.get())) {
  tuning->GiveCapacityTo(runs_->buffer());
  runs_->buffer()->WhenWanted([weak = std::weak_ptr<Producers>(producers_)] {
    if (const auto producers = weak.lock()) producers->Wake();
  });
  runs_->buffer()->Resume();
  producers_->Start();
  producers_->Begin();
}

void FunctionRunner::Continue() {
  runs_->buffer()->Resume();
  // Stop may have cancelled the buffer before Resume opened it.
  if (producers_->stopped() && !has_next_) runs_->buffer()->Cancel();
}

void FunctionRunner::SetLimit(int64_t steps) {
  runs_->buffer()->SetLimit(steps);
  producers_->Wake();
}

bool FunctionRunner::HasWaitingTakes() {
  return runs_->buffer()->AwaitNoTake(
      [weak = std::weak_ptr<Producers>(producers_)](const Status&) {
        if (const auto producers = weak.lock()) producers->CheckAwaited();
      });
}

void FunctionRunner::Stop(bool cancels_takes) {
  StepBuffer* const buffer = runs_->buffer();
  if (producers_->Stop()) {
    cancels_takes ? buffer->Cancel() : buffer->CancelRuns();
  }
  {
    mutex_lock l(mu_);
    if (left_behind_) return;
  }
  bool have_left = producers_->AwaitLeft(kReadPatience, [this, cancels_takes] {
    return !cancels_takes && HasWaitingTakes();
  });
  if (!have_left) {
    runs_->Cancel();
    have_left = producers_->AwaitLeft(kStopPatience);
  }
  if (have_left) {
    producers_->Join();
    return;
  }
  {
    mutex_lock l(mu_);
    if (std::exchange(left_behind_, true)) return;
  }
  LOG(WARNING) << "Stage '" << buffer->name() << "' was stopped while its "
               << "region is still running, in code that cannot be "
               << "cancelled. Its thread ends after that run.";
  Env::Default()->SchedClosure([producers = producers_] { producers->Join(); });
}

}  // namespace staging
}  // namespace tensorflow
