// SPDX-License-Identifier: Apache-2.0
//
// The part of TensorBuffer that admits the runs of the producers.

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/buffer/tensor_buffer_callbacks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

RunBegin TensorBuffer::BeginRun(uint64_t producer) {
  mutex_lock l(mu_);
  if (state_ == State::kClosed && !cancelled_ && IsFinal()) {
    return RunBegin::kRefused;
  }
  if (!MayBegin()) return RunBegin::kWaits;
  ++active_runs_;
  ++active_by_producer_[producer];
  return RunBegin::kAdmitted;
}

void TensorBuffer::AwaitRun(uint64_t producer,
                            CancellationManager* cancellation,
                            std::atomic<int64_t>* admitted_at, Done done) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (cancelled_) {
      due.Add(std::move(done), CancelledStatus());
    } else if (state_ == State::kClosed && IsFinal()) {
      due.Add(std::move(done), EndedStatus());
    } else if (AddWaiter(cancellation, /*timeout_millis=*/0,
                         {std::move(done), {}, producer, admitted_at},
                         &waiting_runs_, &due)) {
      AdmitRuns(&due);
    }
  }
  due.Run();
}

void TensorBuffer::EndRun(RunEnd end) {
  DueCallbacks due;
  RunEnd forgotten;  // Destroyed without the lock.
  {
    mutex_lock l(mu_);
    --active_runs_;
    --active_by_producer_[end.producer];
    if (!end.has_put && !end.is_stale) {
      failed_runs_.push_back(std::move(end));
      if (failed_runs_.size() > kMaxThreads) {
        forgotten = std::move(failed_runs_.front());
        failed_runs_.pop_front();
      }
    }
    if (state_ == State::kEnding && HasEnded()) FinishEnding(&due);
    StartPausesIfQuiet(&due);
  }
  // The runtime of a server ends a run with the lock of its devices.
  due.RunInAnotherThread();
}

bool TensorBuffer::MayBegin() const {
  return holders_.empty() && !cancelled_ &&
         (state_ == State::kIdle || state_ == State::kOpen);
}

void TensorBuffer::AdmitRuns(DueCallbacks* due) {
  if (!MayBegin()) return;
  while (!waiting_runs_.empty()) {
    Waiter run = Extract(&waiting_runs_, waiting_runs_.begin());
    ++active_runs_;
    ++active_by_producer_[run.producer];
    *run.admitted_at = Source::Now();
    due->Add(std::move(run.done), OkStatus());
  }
}

bool TensorBuffer::HasEnded() const {
  if (cancelled_ || active_runs_ == 0) return true;
  if (errors::IsOutOfRange(end_status_) || !end_producer_.has_value()) {
    return false;
  }
  const auto active = active_by_producer_.find(*end_producer_);
  return active == active_by_producer_.end() || active->second == 0;
}

bool TensorBuffer::IsFinal() const {
  return end_reads_.empty() && !is_retried_;
}

bool TensorBuffer::FindEnd(bool gives_back) {
  bool found = false;
  for (const RunEnd& run : failed_runs_) {
    if (run.reads.IsStale()) continue;
    end_reads_.Add(run.reads);
    end_producer_ = run.producer;
    found = true;
  }
  if (gives_back && found) {
    for (RunEnd& run : failed_runs_) {
      for (auto& [read, element] : run.elements) {
        read.first->GiveBack(read.second, std::move(element));
      }
      run.elements.clear();
    }
  }
  return failed_runs_.empty() || found;
}

void TensorBuffer::EndWaiters(Waiters* waiters, const Status& status,
                              DueCallbacks* due) {
  while (!waiters->empty()) {
    due->Add(Extract(waiters, waiters->begin()).done, status);
  }
}

bool TensorBuffer::AddWaiter(CancellationManager* cancellation,
                             int64_t timeout_millis, Waiter waiter,
                             Waiters* waiters, DueCallbacks* due) {
  const uint64_t id = next_id_++;
  if (!StartWatch(id, cancellation, timeout_millis, &waiter.watch)) {
    due->Add(std::move(waiter.done), CancelledStatus());
    return false;
  }
  waiters->emplace_hint(waiters->end(), id, std::move(waiter));
  return true;
}

TensorBuffer::Waiter TensorBuffer::Extract(Waiters* waiters,
                                           Waiters::iterator it) {
  Waiter waiter = std::move(it->second);
  waiters->erase(it);
  StopWatch(&waiter.watch);
  return waiter;
}

Status TensorBuffer::EndedStatus() const {
  return errors::Cancelled("Stage '", options_.name, "' ", kHasEnded);
}

}  // namespace staging
}  // namespace tensorflow
