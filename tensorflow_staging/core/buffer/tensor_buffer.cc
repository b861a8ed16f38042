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

TensorBuffer::Options WithDefaults(TensorBuffer::Options options) {
  if (options.capacity == kAutotune && options.capacity_bytes == 0) {
    options.capacity_bytes = TensorBuffer::kTunedCapacityBytes;
  }
  return options;
}

int64_t BytesOf(const TensorBuffer::Record& record) {
  int64_t bytes = 0;
  for (const Tensor& tensor : record) bytes += tensor.TotalBytes();
  return bytes;
}

void Write(const WaitTimes::Summary& summary, BufferStats::Waits* waits) {
  waits->set_calls(summary.calls);
  waits->set_waits(summary.waits);
  waits->set_total_micros(summary.total_micros);
  waits->set_p50_micros(summary.p50_micros);
  waits->set_p99_micros(summary.p99_micros);
}

}  // namespace

TensorBuffer::TensorBuffer(Options options)
    : SourceReader(options.name),
      options_(WithDefaults(std::move(options))),
      slow_start_(options_.capacity),
      timer_(options_.env, strings::StrCat(options_.name, "_deadlines"),
             [this](uint64_t id) { OnDeadline(id); }) {}

TensorBuffer::~TensorBuffer() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    EndPuts(&due);
    EndTakes(CancelledStatus(), &due);
    EndWaiters(&waiting_runs_, CancelledStatus(), &due);
    EndWaiters(&waiting_pauses_, CancelledStatus(), &due);
  }
  due.Run();
}

void TensorBuffer::PutAsync(Record record, int64_t timeout_millis,
                            CancellationManager* cancellation, PutDone done,
                            const StagedRun* run) {
  StoredRecord stored;
  stored.bytes = CountedBytes(record);
  stored.record = std::move(record);
  const bool is_admitted = run != nullptr && run->is_admitted();
  if (run != nullptr) stored.reads = run->reads();
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    const bool late = cancelled_ || state_ == State::kClosed;
    const bool refused = late && !is_admitted;
    const bool discarded = !refused && run != nullptr && run->IsStale();
    if (!refused && !discarded) {
      if (state_ == State::kIdle) Open();
      if (run != nullptr) is_new_ = false;
    }
    if (refused) {
      due.Add(std::move(done), CancelledStatus());
    } else if (discarded) {
      ++counters_.put;
      ++counters_.discarded;
      due.Add(std::move(done), OkStatus());
    } else if (!waiting_takes_.empty()) {
      due.Add(std::move(done), OkStatus());
      GiveToTake(std::move(stored), &due);
    } else if (late || (waiting_puts_.empty() && HasRoom(stored.bytes))) {
      Store(std::move(stored));
      due.Add(std::move(done), OkStatus());
    } else {
      // A buffer that lacks bytes gains nothing from more room.
      if (HasBytes(stored.bytes)) CountFull();
      const uint64_t id = next_id_++;
      Watch watch;
      if (StartWatch(id, cancellation, timeout_millis, &watch)) {
        waiting_puts_.emplace_hint(
            waiting_puts_.end(), id,
            WaitingPut{std::move(stored.record), stored.bytes, std::move(done),
                       watch, NowMicros(), is_admitted,
                       std::move(stored.reads)});
        StartPausesIfQuiet(&due);
      } else {
        due.Add(std::move(done), CancelledStatus());
      }
    }
  }
  due.Run();
}

void TensorBuffer::TakeAsync(CancellationManager* cancellation, TakeDone done,
                             RecordTaker taker) {
  DueCallbacks due;
  std::optional<int64_t> settled;
  {
    mutex_lock l(mu_);
    if (state_ == State::kClosed && records_.empty() && is_retried_ &&
        !cancelled_) {
      // Something was not initialised, and may be now.
      Open();
      AdmitRuns(&due);
    }
    if (const Status fits = records_.empty() || !records_[0].is_restored
                                ? OkStatus()
                                : CheckNames(records_[0].tensor_names);
        !fits.ok()) {
      due.AddTake(std::move(done), fits, Record());
    } else if (!records_.empty()) {
      StoredRecord stored = std::move(records_.front());
      records_.pop_front();
      stored_bytes_ -= stored.bytes;
      ++counters_.taken;
      CountTake();
      settled = NewlySettled();
      AdmitPuts(&due);
      Tell(taker, stored);
      due.AddTake(std::move(done), OkStatus(), std::move(stored.record));
    } else if (state_ == State::kClosed) {
      TellEnd(taker);
      due.AddTake(std::move(done), end_status_, Record());
    } else if (cancelled_) {
      due.AddTake(std::move(done), CancelledStatus(), Record());
    } else if (IsHeldBy(taker.step_container)) {
      due.AddTake(std::move(done), HeldByTakerStatus(), Record());
    } else {
      const uint64_t id = next_id_++;
      const int64_t timeout_millis =
          state_ == State::kIdle ? options_.idle_timeout_millis : 0;
      Watch watch;
      if (StartWatch(id, cancellation, timeout_millis, &watch)) {
        waiting_takes_.emplace_hint(
            waiting_takes_.end(), id,
            WaitingTake{std::move(done), watch, NowMicros(), taker});
      } else {
        due.AddTake(std::move(done), CancelledStatus(), Record());
      }
    }
  }
  LogSettled(settled);
  due.Run();
}

void TensorBuffer::Cancel() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    cancelled_ = true;
    if (state_ == State::kEnding) FinishEnding(&due);
    KeepOrEndPuts(&due);
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
    failed_runs_.clear();
    AdmitRuns(&due);
  }
  due.Run();
}

void TensorBuffer::Close(const Status& cause) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (state_ == State::kIdle || state_ == State::kOpen) {
      const bool is_retried = errors::IsFailedPrecondition(cause) && IsNew() &&
                              !failed_runs_.empty();
      if (FindEnd(/*gives_back=*/is_retried)) {
        state_ = State::kEnding;
        is_retried_ = is_retried;
        end_status_ = cause.ok() ? errors::OutOfRange(
                                       "Stage '", options_.name,
                                       "' has reached the end of its data.")
                                 : cause;
        if (HasEnded()) FinishEnding(&due);
      }
    }
  }
  due.Run();
}

std::string TensorBuffer::KeepRecordsOn(const std::string& place,
                                        const RecordLayout& layout) {
  mutex_lock l(mu_);
  if (place_of_records_.empty()) {
    place_of_records_ = place;
    layout_ = layout;
  }
  return place_of_records_;
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
  return strings::StrCat(
      "TensorBuffer '", options_.name, "': ", StateName(),
      cancelled_ ? ", cancelled" : "", holders_.empty() ? "" : ", held", ", ",
      records_.size(), " of ", Capacity(), " records, ", counters_.put,
      " put, ", counters_.taken, " taken, ", counters_.dropped, " dropped, ",
      counters_.discarded, " discarded, ", active_runs_, " runs active, ",
      waiting_runs_.size(), " runs, ", waiting_puts_.size(), " puts and ",
      waiting_takes_.size(), " takes waiting");
}

int64_t TensorBuffer::MemoryUsed() const {
  // Counting strings takes long, so this uses references, without the lock.
  std::vector<Record> records;
  {
    mutex_lock l(mu_);
    records.reserve(records_.size());
    for (const StoredRecord& stored : records_) {
      records.push_back(stored.record);
    }
  }
  int64_t bytes = 0;
  for (const Record& record : records) bytes += BytesOf(record);
  return bytes;
}

BufferStats TensorBuffer::GetStats() const {
  BufferStats stats;
  stats.set_bytes(MemoryUsed());
  stats.set_tunes_capacity(TunesCapacity());
  stats.set_capacity_bytes(options_.capacity_bytes);
  mutex_lock l(mu_);
  stats.set_capacity(Capacity());
  stats.set_room(Room());
  stats.set_records(records_.size());
  stats.set_put(counters_.put);
  stats.set_taken(counters_.taken);
  stats.set_dropped(counters_.dropped);
  stats.set_discarded(counters_.discarded);
  stats.set_waiting_puts(waiting_puts_.size());
  stats.set_waiting_takes(waiting_takes_.size());
  Write(put_waits_.Summarize(counters_.put), stats.mutable_put_waits());
  Write(take_waits_.Summarize(counters_.taken), stats.mutable_take_waits());
  stats.set_capacity_settled(TunesCapacity() && tuner_.settled());
  stats.mutable_steps()->set_count(steps_.count());
  stats.mutable_steps()->set_total_micros(steps_.total_micros());
  stats.mutable_steps()->set_wait_micros(steps_.wait_micros());
  stats.set_state(StateName());
  stats.set_error_code(end_status_.raw_code());
  stats.set_error_message(std::string(end_status_.message()));
  return stats;
}

int64_t TensorBuffer::CountedBytes(const Record& record) const {
  return options_.capacity_bytes > 0 ? BytesOf(record) : 0;
}

bool TensorBuffer::HasBytes(int64_t bytes) const {
  return options_.capacity_bytes == 0 ||
         bytes <= options_.capacity_bytes - stored_bytes_;
}

bool TensorBuffer::HasRoom(int64_t bytes) const {
  if (records_.empty()) return true;
  return static_cast<int64_t>(records_.size()) < Room() && HasBytes(bytes);
}

void TensorBuffer::Store(StoredRecord stored) {
  stored_bytes_ += stored.bytes;
  records_.push_back(std::move(stored));
  ++counters_.put;
}

void TensorBuffer::GiveToTake(StoredRecord stored, DueCallbacks* due) {
  WaitingTake take = Extract(waiting_takes_.begin());
  CountWaitingTake(take);
  ++counters_.put;
  ++counters_.taken;
  Tell(take.taker, stored);
  due->AddTake(std::move(take.done), OkStatus(), std::move(stored.record));
}

void TensorBuffer::Tell(const RecordTaker& taker,
                        const StoredRecord& stored) const {
  if (taker.reads != nullptr) *taker.reads = stored.reads;
  if (taker.is_restored != nullptr) *taker.is_restored = stored.is_restored;
}

void TensorBuffer::TellEnd(const RecordTaker& taker) const {
  if (taker.reads != nullptr) *taker.reads = end_reads_;
}

void TensorBuffer::AdmitPuts(DueCallbacks* due) {
  while (!waiting_puts_.empty() &&
         HasRoom(waiting_puts_.begin()->second.bytes)) {
    AdmitOldestPut(due);
  }
}

void TensorBuffer::KeepOrEndPuts(DueCallbacks* due) {
  while (!waiting_puts_.empty()) {
    if (waiting_puts_.begin()->second.is_admitted) {
      AdmitOldestPut(due);
    } else {
      due->Add(Extract(waiting_puts_.begin()).done, CancelledStatus());
    }
  }
}

void TensorBuffer::AdmitOldestPut(DueCallbacks* due) {
  WaitingPut put = Extract(waiting_puts_.begin());
  put_waits_.Add(NowMicros() - put.since_micros);
  Store({std::move(put.record), put.bytes, std::move(put.reads)});
  due->Add(std::move(put.done), OkStatus());
}

void TensorBuffer::Open() {
  // From now on a record may come at any time, so takes wait without a
  // deadline.
  if (state_ == State::kIdle) {
    for (auto& [id, take] : waiting_takes_) RemoveDeadline(&take.watch);
  }
  state_ = State::kOpen;
  end_status_ = OkStatus();
  end_reads_ = {};
  end_producer_.reset();
  is_retried_ = false;
}

void TensorBuffer::FinishEnding(DueCallbacks* due) {
  state_ = State::kClosed;
  EndTakes(end_status_, due);
  if (IsFinal()) EndWaiters(&waiting_runs_, EndedStatus(), due);
}

void TensorBuffer::EndPuts(DueCallbacks* due) {
  while (!waiting_puts_.empty()) {
    due->Add(Extract(waiting_puts_.begin()).done, CancelledStatus());
  }
}

void TensorBuffer::EndTakes(const Status& status, DueCallbacks* due) {
  while (!waiting_takes_.empty()) {
    WaitingTake take = Extract(waiting_takes_.begin());
    TellEnd(take.taker);
    due->AddTake(std::move(take.done), status, Record());
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
    } else if (auto pause = waiting_pauses_.find(id);
               pause != waiting_pauses_.end()) {
      EndPause(pause, CancelledStatus(), &due);
    }
  }
  due.Run();
}

void TensorBuffer::OnDeadline(uint64_t id) {
  DueCallbacks due;
  int64_t timeouts = 0;
  int64_t capacity = 0;
  {
    mutex_lock l(mu_);
    capacity = Capacity();
    if (waiting_puts_.count(id) > 0) {
      // No record is dropped while the buffer holds fewer than its capacity.
      slow_start_.End();
      AdmitPuts(&due);
    }
    if (auto put = waiting_puts_.find(id); put != waiting_puts_.end()) {
      due.Add(Extract(put).done, OkStatus());
      AdmitPuts(&due);
      timeouts = ++counters_.dropped;
    } else if (auto take = waiting_takes_.find(id);
               take != waiting_takes_.end() &&
               take->second.watch.has_deadline) {
      due.AddTake(Extract(take).done, NotFedStatus(), Record());
    } else if (auto pause = waiting_pauses_.find(id);
               pause != waiting_pauses_.end()) {
      EndPause(pause, PauseTimedOutStatus(), &due);
    } else if (program_watch_ == id) {
      FillIfProgramPauses(&due);
    }
  }
  if (timeouts > 0) {
    LOG_EVERY_N_SEC(WARNING, 1)
        << "Stage '" << options_.name << "' dropped a record: its buffer of "
        << capacity << " records had no room for it within "
        << "timeout_millis, because consumers took records too slowly. "
        << "Dropped so far: " << timeouts
        << ". A larger timeout_millis waits longer; 0 waits without a limit.";
  }
  due.Run();
}

const char* TensorBuffer::StateName() const {
  switch (state_) {
    case State::kIdle:
      return "idle";
    case State::kOpen:
      return "open";
    case State::kEnding:
      return "ending";
    case State::kClosed:
      return "closed";
  }
  return "";
}

Status TensorBuffer::CancelledStatus() const {
  return errors::Cancelled("Stage '", options_.name, "' was cancelled.");
}

Status TensorBuffer::NotFedStatus() const {
  return errors::FailedPrecondition(
      "Stage '", options_.name, "' is not running: nothing fed its buffer for ",
      options_.idle_timeout_millis, " ms. Add tf.make_prefetch_hook() to the ",
      "hooks of the session that runs the training step, or run the step ",
      "inside `with tf.make_prefetch_hook().running(session):`. A stage that ",
      "was created after the hook had started does not run.");
}

}  // namespace staging
}  // namespace tensorflow
