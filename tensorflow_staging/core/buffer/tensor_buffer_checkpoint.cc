// SPDX-License-Identifier: Apache-2.0
//
// The part of TensorBuffer that a checkpoint uses: it pauses the stage, reads
// the records, and gives them back after a restart.

#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/buffer/tensor_buffer_callbacks.h"

namespace tensorflow {
namespace staging {

void TensorBuffer::PauseAsync(CancellationManager* cancellation,
                              PauseDone done) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    ++pauses_;
    if (has_unadmitted_put_) {
      due.Add(std::move(done),
              errors::FailedPrecondition(
                  "Stage '", options_.name,
                  "' cannot be saved: it began to run before the graph had the "
                  "op that saves the position of its iterator. Create the "
                  "saver before the session's first step."));
      LeavePause(&due);
    } else if (IsQuiet()) {
      due.Add(std::move(done), OkStatus());
    } else if (!AddWaiter(cancellation, options_.restart_timeout_millis,
                          std::move(done), &waiting_pauses_, &due)) {
      LeavePause(&due);
    }
  }
  due.Run();
}

void TensorBuffer::EndPause() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    LeavePause(&due);
  }
  due.RunInAnotherThread();
}

std::vector<TensorBuffer::Record> TensorBuffer::Records() const {
  std::vector<Record> records;
  mutex_lock l(mu_);
  records.reserve(records_.size() + waiting_puts_.size());
  for (const StoredRecord& stored : records_) records.push_back(stored.record);
  for (const auto& [id, put] : waiting_puts_) records.push_back(put.record);
  return records;
}

Status TensorBuffer::Restore(std::vector<Record> records) {
  mutex_lock l(mu_);
  if (restarts_ == 0) {
    return errors::FailedPrecondition(
        "Records can be restored only while stage '", options_.name,
        "' restarts: TensorBufferRestore must run after TensorBufferRestart, "
        "in the same run.");
  }
  restored_ = std::move(records);
  return OkStatus();
}

bool TensorBuffer::IsQuiet() const {
  // The put is the last thing that a run does with what it has read.
  return active_runs_ <= static_cast<int64_t>(waiting_puts_.size());
}

void TensorBuffer::StartPausesIfQuiet(DueCallbacks* due) {
  if (IsQuiet()) EndWaiters(&waiting_pauses_, OkStatus(), due);
}

void TensorBuffer::LeavePause(DueCallbacks* due) {
  if (--pauses_ == 0) AdmitRuns(due);
}

void TensorBuffer::AdmitRestored(DueCallbacks* due) {
  for (Record& record : restored_) {
    if (waiting_takes_.empty()) {
      const int64_t bytes = CountedBytes(record);
      Store(std::move(record), bytes);
    } else {
      WaitingTake take = Extract(waiting_takes_.begin());
      CountWaitingTake(take);
      ++counters_.put;
      ++counters_.taken;
      due->AddTake(std::move(take.done), OkStatus(), std::move(record));
    }
  }
  restored_.clear();
}

Status TensorBuffer::PauseTimedOutStatus() const {
  return errors::DeadlineExceeded(
      "Stage '", options_.name, "' could not be saved: ",
      active_runs_ - static_cast<int64_t>(waiting_puts_.size()),
      " of its runs had not ended after ", options_.restart_timeout_millis,
      " ms. The position of an iterator can be saved only while no run reads "
      "it. The runs of the stage seem to be waiting for slow input.");
}

}  // namespace staging
}  // namespace tensorflow
