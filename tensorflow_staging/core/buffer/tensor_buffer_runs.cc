// SPDX-License-Identifier: Apache-2.0
//
// The part of TensorBuffer that admits the runs of its producers, and follows
// what is rolled back.

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

bool TensorBuffer::BeginRun(ProducerId producer) {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  if (!MayBegin()) return false;
  gate_.Admit(producer, &due);
  return true;
}

void TensorBuffer::AwaitRun(ProducerId producer,
                            CancellationManager* cancellation, Done done) {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  RunGate::Run run = {std::move(done), producer};
  if (cancelled_ || !Wait(&gate_.waiting(), cancellation,
                          /*timeout_millis=*/0, &run)) {
    due.Add(std::move(run.done), CancelledStatus());
  } else {
    AdmitRuns(&due);
  }
}

void TensorBuffer::EndRun(RunEnd end) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    // The run was stopped, or has failed with what the program has changed since.
    const bool is_void =
        cancelled_ || (!end.is_over && end.discards != discards_);
    gate_.Leave(std::move(end), &due);
    if (is_void) gate_.GiveBackFailed(&due);
    if (state_ == State::kEnding && HasEnded()) FinishEnding(&due);
  }
  // The runtime of a server ends a run with the lock of its devices.
  due.RunInAnotherThread();
}

bool TensorBuffer::MayBegin() const {
  return !cancelled_ && (state_ == State::kIdle || state_ == State::kOpen);
}

void TensorBuffer::AdmitRuns(DueCallbacks* due) {
  if (MayBegin()) gate_.AdmitWaiting(due);
}

int64_t TensorBuffer::Discard() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  ++discards_;
  return GiveBackRecords(&due);
}

int64_t TensorBuffer::GiveBackRecords() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  return GiveBackRecords(&due);
}

int64_t TensorBuffer::GiveBackRecords(DueCallbacks* due) {
  const int64_t waiting = records_.size() + puts_.size();
  for (const StoredRecord& stored : records_) due->GiveBack(stored.reads);
  for (const auto& [id, put] : puts_) due->GiveBack(put.stored.reads);
  gate_.GiveBackFailed(due);
  is_retried_ ? due->GiveBackElements(end_reads_) : due->GiveBack(end_reads_);
  // No roll-back makes these again.
  Drop(
      [](const StoredRecord& stored) {
        return stored.reads == nullptr || stored.reads->empty();
      },
      due);
  return waiting;
}

void TensorBuffer::OnRollBack() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  const int64_t before = counters_.discarded;
  Drop(
      [](const StoredRecord& stored) {
        return stored.reads != nullptr && stored.reads->is_stale();
      },
      &due);
  if (is_closing() && end_reads_ != nullptr && end_reads_->is_stale()) {
    Open(&due);
  }
  AdmitPuts(&due);
  AdmitRuns(&due);
  VLOG(1) << absl::StrCat("Stage '", options_.name, "' makes ",
                          counters_.discarded - before,
                          " records again, because something else reads or "
                          "changes an iterator.");
}

void TensorBuffer::Drop(absl::FunctionRef<bool(const StoredRecord&)> is_dropped,
                        DueCallbacks* due) {
  const int64_t before = counters_.discarded;
  std::deque<StoredRecord> kept;
  for (StoredRecord& stored : records_) {
    if (is_dropped(stored)) {
      stored_bytes_.Subtract(stored.bytes);
      ++counters_.discarded;
      due->Destroy(std::move(stored));
    } else {
      kept.push_back(std::move(stored));
    }
  }
  records_ = std::move(kept);
  for (WaitingPut& put : puts_.RemoveIf([&](const WaitingPut& waiting) {
         return is_dropped(waiting.stored);
       })) {
    ++counters_.put;
    ++counters_.discarded;
    due->Destroy(std::move(put.stored));
    due->Add(std::move(put.done), OkStatus());
  }
  if (records_.empty() && counters_.discarded > before) room_.OnDropped();
}

}  // namespace staging
}  // namespace tensorflow
