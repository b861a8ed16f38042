// SPDX-License-Identifier: Apache-2.0
//
// The part of TensorBuffer that admits runs of the region and restarts the
// stage.

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/buffer/tensor_buffer_callbacks.h"

namespace tensorflow {
namespace staging {

void TensorBuffer::BeginRunAsync(CancellationManager* cancellation,
                                 RunDone done) {
  admits_runs_.store(true, std::memory_order_relaxed);
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (cancelled_) {
      due.Add(std::move(done), CancelledStatus());
    } else if (MayBegin()) {
      ++active_runs_;
      due.Add(std::move(done), OkStatus());
    } else {
      AddWaiter(cancellation, /*timeout_millis=*/0, std::move(done),
                &waiting_runs_, &due);
    }
  }
  due.Run();
}

void TensorBuffer::EndRun(bool has_put) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    --active_runs_;
    if (!has_put) ++failed_runs_;
    if (active_runs_ == 0) {
      EndWaiters(&waiting_restarts_, OkStatus(), &due);
      if (state_ == State::kEnding) FinishEnding(&due);
    }
    StartPausesIfQuiet(&due);
  }
  due.RunInAnotherThread();
}

void TensorBuffer::RestartAsync(CancellationManager* cancellation,
                                RestartDone done) {
  DueCallbacks due;
  int64_t discarded = 0;
  {
    mutex_lock l(mu_);
    if (++restarts_ == 1) discarded_before_ = counters_.discarded;
    if (state_ == State::kEnding || state_ == State::kClosed) Open();
    DiscardRecords(&due);
    if (active_runs_ == 0) {
      due.Add(std::move(done), OkStatus());
    } else if (!AddWaiter(cancellation, options_.restart_timeout_millis,
                          std::move(done), &waiting_restarts_, &due)) {
      discarded = LeaveRestart(&due);
    }
  }
  LogDiscarded(discarded);
  due.Run();
}

void TensorBuffer::EndRestart() {
  DueCallbacks due;
  int64_t discarded;
  {
    mutex_lock l(mu_);
    discarded = LeaveRestart(&due);
  }
  LogDiscarded(discarded);
  due.RunInAnotherThread();
}

bool TensorBuffer::MayBegin() const {
  return restarts_ == 0 && pauses_ == 0 && !cancelled_ &&
         (state_ == State::kIdle || state_ == State::kOpen);
}

void TensorBuffer::AdmitRuns(DueCallbacks* due) {
  if (!MayBegin()) return;
  active_runs_ += waiting_runs_.size();
  EndWaiters(&waiting_runs_, OkStatus(), due);
}

void TensorBuffer::DiscardRecords(DueCallbacks* due) {
  restored_.clear();
  counters_.discarded += records_.size();
  records_.clear();
  stored_bytes_ = 0;
  slow_start_ = SlowStart(options_.capacity);
  while (!waiting_puts_.empty()) {
    ++counters_.put;
    ++counters_.discarded;
    due->Add(Extract(waiting_puts_.begin()).done, OkStatus());
  }
}

int64_t TensorBuffer::LeaveRestart(DueCallbacks* due) {
  if (--restarts_ > 0) return 0;
  late_closes_ = std::max<int64_t>(0, late_closes_ + failed_runs_ - closes_);
  failed_runs_ = closes_ = 0;
  AdmitRestored(due);
  AdmitRuns(due);
  return counters_.discarded - discarded_before_;
}

void TensorBuffer::LogDiscarded(int64_t discarded) const {
  if (discarded == 0) return;
  LOG(INFO) << "Stage '" << options_.name << "' discarded " << discarded
            << " records of the data before the restart.";
}

void TensorBuffer::EndWaiters(Waiters* waiters, const Status& status,
                              DueCallbacks* due) {
  while (!waiters->empty()) {
    due->Add(Extract(waiters, waiters->begin()).done, status);
  }
}

bool TensorBuffer::AddWaiter(CancellationManager* cancellation,
                             int64_t timeout_millis,
                             absl::AnyInvocable<void(const Status&)> done,
                             Waiters* waiters, DueCallbacks* due) {
  const uint64_t id = next_id_++;
  Watch watch;
  if (!StartWatch(id, cancellation, timeout_millis, &watch)) {
    due->Add(std::move(done), CancelledStatus());
    return false;
  }
  waiters->emplace_hint(waiters->end(), id, Waiter{std::move(done), watch});
  return true;
}

TensorBuffer::Waiter TensorBuffer::Extract(Waiters* waiters,
                                           Waiters::iterator it) {
  Waiter waiter = std::move(it->second);
  waiters->erase(it);
  StopWatch(&waiter.watch);
  return waiter;
}

Status TensorBuffer::RestartTimedOutStatus() const {
  return errors::DeadlineExceeded(
      "Stage '", options_.name, "' could not restart: ", active_runs_,
      " of its runs had not ended after ", options_.restart_timeout_millis,
      " ms. An iterator can be initialised again only while no run reads it. "
      "The runs of the stage seem to be waiting for slow input.");
}

}  // namespace staging
}  // namespace tensorflow
