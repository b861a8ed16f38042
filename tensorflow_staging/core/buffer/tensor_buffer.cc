// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/tensor_buffer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/buffer/tensor_buffer_callbacks.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMicrosPerMilli = 1000;

int64_t MillisToMicros(int64_t millis) {
  return std::min(millis,
                  std::numeric_limits<int64_t>::max() / kMicrosPerMilli) *
         kMicrosPerMilli;
}

}  // namespace

TensorBuffer::TensorBuffer(Options options)
    : options_(std::move(options)),
      timer_(options_.env, strings::StrCat(options_.name, "_deadlines"),
             [this](uint64_t id) { OnDeadline(id); }) {}

TensorBuffer::~TensorBuffer() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    EndPuts(&due);
    EndTakes(CancelledStatus(), &due);
    EndWaiters(&waiting_runs_, CancelledStatus(), &due);
    EndWaiters(&waiting_restarts_, CancelledStatus(), &due);
  }
  due.Run();
}

void TensorBuffer::PutAsync(Record record, int64_t timeout_millis,
                            CancellationManager* cancellation, PutDone done) {
  const int64_t bytes = CountedBytes(record);
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    const bool refused = cancelled_ || state_ == State::kClosed;
    const bool discarded = !refused && restarts_ > 0;
    if (state_ == State::kIdle && !refused && !discarded) Open();
    if (refused) {
      due.Add(std::move(done), CancelledStatus());
    } else if (discarded) {
      ++counters_.put;
      ++counters_.discarded;
      due.Add(std::move(done), OkStatus());
    } else if (!waiting_takes_.empty()) {
      WaitingTake take = Extract(waiting_takes_.begin());
      ++counters_.put;
      ++counters_.taken;
      due.Add(std::move(done), OkStatus());
      due.AddTake(std::move(take.done), OkStatus(), std::move(record));
    } else if (waiting_puts_.empty() && HasRoom(bytes)) {
      Store(std::move(record), bytes);
      due.Add(std::move(done), OkStatus());
    } else {
      const uint64_t id = next_id_++;
      Watch watch;
      if (StartWatch(id, cancellation, timeout_millis, &watch)) {
        waiting_puts_.emplace_hint(
            waiting_puts_.end(), id,
            WaitingPut{std::move(record), bytes, std::move(done), watch});
      } else {
        due.Add(std::move(done), CancelledStatus());
      }
    }
  }
  due.Run();
}

void TensorBuffer::TakeAsync(CancellationManager* cancellation, TakeDone done) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (!records_.empty()) {
      StoredRecord stored = std::move(records_.front());
      records_.pop_front();
      stored_bytes_ -= stored.bytes;
      ++counters_.taken;
      AdmitPuts(&due);
      due.AddTake(std::move(done), OkStatus(), std::move(stored.record));
    } else if (state_ == State::kClosed) {
      due.AddTake(std::move(done), end_status_, Record());
    } else if (cancelled_) {
      due.AddTake(std::move(done), CancelledStatus(), Record());
    } else {
      const uint64_t id = next_id_++;
      const int64_t timeout_millis =
          state_ == State::kIdle ? options_.idle_timeout_millis : 0;
      Watch watch;
      if (StartWatch(id, cancellation, timeout_millis, &watch)) {
        waiting_takes_.emplace_hint(waiting_takes_.end(), id,
                                    WaitingTake{std::move(done), watch});
      } else {
        due.AddTake(std::move(done), CancelledStatus(), Record());
      }
    }
  }
  due.Run();
}

void TensorBuffer::Cancel() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    cancelled_ = true;
    // From now on, no active run can put a record.
    if (state_ == State::kEnding) FinishEnding(&due);
    EndPuts(&due);
    EndTakes(CancelledStatus(), &due);
    EndWaiters(&waiting_runs_, CancelledStatus(), &due);
  }
  due.Run();
}

void TensorBuffer::Resume() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    Open();
    cancelled_ = false;
    failed_runs_ = closes_ = late_closes_ = 0;
    AdmitRuns(&due);
  }
  due.Run();
}

void TensorBuffer::Close(const Status& cause) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    ++closes_;
    if (restarts_ == 0 && (state_ == State::kIdle || state_ == State::kOpen)) {
      state_ = State::kEnding;
      end_status_ = cause.ok() ? errors::OutOfRange("Stage '", options_.name,
                                                    "' has reached the end of "
                                                    "its data.")
                               : cause;
      if (active_runs_ == 0 || cancelled_) FinishEnding(&due);
    }
  }
  due.Run();
}

std::string TensorBuffer::KeepRecordsOn(const std::string& device) {
  mutex_lock l(mu_);
  if (device_of_records_.empty()) device_of_records_ = device;
  return device_of_records_;
}

int64_t TensorBuffer::Size() const {
  mutex_lock l(mu_);
  return records_.size();
}

TensorBuffer::Counters TensorBuffer::GetCounters() const {
  mutex_lock l(mu_);
  return counters_;
}

std::string TensorBuffer::DebugString() const {
  mutex_lock l(mu_);
  const char* state = "";
  switch (state_) {
    case State::kIdle:
      state = "idle";
      break;
    case State::kOpen:
      state = "open";
      break;
    case State::kEnding:
      state = "ending";
      break;
    case State::kClosed:
      state = "closed";
      break;
  }
  return strings::StrCat(
      "TensorBuffer '", options_.name, "': ", state,
      cancelled_ ? ", cancelled" : "", restarts_ > 0 ? ", restarting" : "",
      ", ", records_.size(), " of ", options_.capacity, " records, ",
      counters_.put, " put, ", counters_.taken, " taken, ", counters_.dropped,
      " dropped, ", counters_.discarded, " discarded, ", active_runs_,
      " runs active, ", waiting_runs_.size(), " runs, ",
      waiting_restarts_.size(), " restarts, ", waiting_puts_.size(),
      " puts and ", waiting_takes_.size(), " takes waiting");
}

int64_t TensorBuffer::MemoryUsed() const {
  mutex_lock l(mu_);
  int64_t bytes = 0;
  for (const StoredRecord& stored : records_) {
    for (const Tensor& tensor : stored.record) bytes += tensor.TotalBytes();
  }
  return bytes;
}

int64_t TensorBuffer::CountedBytes(const Record& record) const {
  int64_t bytes = 0;
  if (options_.capacity_bytes > 0) {
    for (const Tensor& tensor : record) bytes += tensor.TotalBytes();
  }
  return bytes;
}

bool TensorBuffer::HasRoom(int64_t bytes) const {
  if (records_.empty()) return true;
  if (static_cast<int64_t>(records_.size()) >= options_.capacity) return false;
  return options_.capacity_bytes == 0 ||
         bytes <= options_.capacity_bytes - stored_bytes_;
}

void TensorBuffer::Store(Record record, int64_t bytes) {
  records_.push_back({std::move(record), bytes});
  stored_bytes_ += bytes;
  ++counters_.put;
}

void TensorBuffer::AdmitPuts(DueCallbacks* due) {
  while (!waiting_puts_.empty() &&
         HasRoom(waiting_puts_.begin()->second.bytes)) {
    WaitingPut put = Extract(waiting_puts_.begin());
    Store(std::move(put.record), put.bytes);
    due->Add(std::move(put.done), OkStatus());
  }
}

void TensorBuffer::Open() {
  // From now on a record may come at any time, so takes wait without a
  // deadline.
  if (state_ == State::kIdle) {
    for (auto& [id, take] : waiting_takes_) RemoveDeadline(&take.watch);
  }
  state_ = State::kOpen;
  end_status_ = OkStatus();
}

void TensorBuffer::FinishEnding(DueCallbacks* due) {
  if (failed_runs_ == 0 && late_closes_ > 0) {
    // No run has failed since the restart: this Close belongs to the data
    // before it.
    late_closes_ -= std::min(late_closes_, closes_);
    closes_ = 0;
    Open();
    AdmitRuns(due);
    return;
  }
  state_ = State::kClosed;
  EndTakes(end_status_, due);
}

void TensorBuffer::EndPuts(DueCallbacks* due) {
  while (!waiting_puts_.empty()) {
    due->Add(Extract(waiting_puts_.begin()).done, CancelledStatus());
  }
}

void TensorBuffer::EndTakes(const Status& status, DueCallbacks* due) {
  while (!waiting_takes_.empty()) {
    due->AddTake(Extract(waiting_takes_.begin()).done, status, Record());
  }
}

bool TensorBuffer::StartWatch(uint64_t id, CancellationManager* cancellation,
                              int64_t timeout_millis, Watch* watch) {
  if (cancellation != nullptr) {
    const CancellationToken token = cancellation->get_cancellation_token();
    // StopWatch does not wait for this callback, so the manager may run it when
    // the waiter, and with it the last reference to the buffer, is gone.
    auto on_cancel = [buffer = core::WeakPtr<TensorBuffer>(this), id]() {
      if (core::RefCountPtr<TensorBuffer> ref = buffer.GetNewRef()) {
        ref->OnCancelled(id);
      }
    };
    if (!cancellation->RegisterCallback(token, std::move(on_cancel))) {
      return false;
    }
    watch->cancellation = cancellation;
    watch->token = token;
  }
  if (timeout_millis > 0) {
    watch->deadline = timer_.Add(id, MillisToMicros(timeout_millis));
    watch->has_deadline = true;
  }
  return true;
}

void TensorBuffer::StopWatch(Watch* watch) {
  if (watch->cancellation != nullptr) {
    // Does not wait for a cancellation in progress: this thread may be running
    // one of its callbacks, and would wait for itself.
    watch->cancellation->TryDeregisterCallback(watch->token);
    watch->cancellation = nullptr;
  }
  RemoveDeadline(watch);
}

void TensorBuffer::RemoveDeadline(Watch* watch) {
  if (watch->has_deadline) {
    timer_.Remove(watch->deadline);
    watch->has_deadline = false;
  }
}

TensorBuffer::WaitingPut TensorBuffer::Extract(WaitingPuts::iterator it) {
  WaitingPut put = std::move(it->second);
  waiting_puts_.erase(it);
  StopWatch(&put.watch);
  return put;
}

TensorBuffer::WaitingTake TensorBuffer::Extract(WaitingTakes::iterator it) {
  WaitingTake take = std::move(it->second);
  waiting_takes_.erase(it);
  StopWatch(&take.watch);
  return take;
}

void TensorBuffer::OnCancelled(uint64_t id) {
  DueCallbacks due;
  int64_t discarded = 0;
  {
    mutex_lock l(mu_);
    if (auto put = waiting_puts_.find(id); put != waiting_puts_.end()) {
      due.Add(Extract(put).done, CancelledStatus());
      // The next put may be smaller, and fit.
      AdmitPuts(&due);
    } else if (auto take = waiting_takes_.find(id);
               take != waiting_takes_.end()) {
      due.AddTake(Extract(take).done, CancelledStatus(), Record());
    } else if (auto run = waiting_runs_.find(id); run != waiting_runs_.end()) {
      due.Add(Extract(&waiting_runs_, run).done, CancelledStatus());
    } else if (auto restart = waiting_restarts_.find(id);
               restart != waiting_restarts_.end()) {
      due.Add(Extract(&waiting_restarts_, restart).done, CancelledStatus());
      discarded = LeaveRestart(&due);
    }
  }
  LogDiscarded(discarded);
  due.Run();
}

void TensorBuffer::OnDeadline(uint64_t id) {
  DueCallbacks due;
  int64_t timeouts = 0;
  int64_t discarded = 0;
  {
    mutex_lock l(mu_);
    if (auto put = waiting_puts_.find(id); put != waiting_puts_.end()) {
      due.Add(Extract(put).done, OkStatus());
      AdmitPuts(&due);
      timeouts = ++counters_.dropped;
    } else if (auto take = waiting_takes_.find(id);
               take != waiting_takes_.end() &&
               take->second.watch.has_deadline) {
      due.AddTake(Extract(take).done, NotFedStatus(), Record());
    } else if (auto restart = waiting_restarts_.find(id);
               restart != waiting_restarts_.end()) {
      due.Add(Extract(&waiting_restarts_, restart).done,
              RestartTimedOutStatus());
      discarded = LeaveRestart(&due);
    }
  }
  if (timeouts > 0) {
    LOG_EVERY_N_SEC(WARNING, 1)
        << "Stage '" << options_.name << "' dropped a record: its buffer of "
        << options_.capacity << " records had no room for it within "
        << "timeout_millis, because consumers took records too slowly. "
        << "Dropped so far: " << timeouts
        << ". A larger timeout_millis waits longer; 0 waits without a limit.";
  }
  LogDiscarded(discarded);
  due.Run();
}

Status TensorBuffer::CancelledStatus() const {
  return errors::Cancelled("Stage '", options_.name, "' was cancelled.");
}

Status TensorBuffer::NotFedStatus() const {
  return errors::FailedPrecondition(
      "Stage '", options_.name, "' is not running: nothing fed its buffer for ",
      options_.idle_timeout_millis, " ms. Add tf.make_prefetch_hook() to the ",
      "hooks of the session that runs the training step.");
}

}  // namespace staging
}  // namespace tensorflow
