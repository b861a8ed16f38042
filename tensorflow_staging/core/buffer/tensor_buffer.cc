// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/tensor_buffer.h"

#include <algorithm>
#include <chrono>  // NOLINT
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/sources/ledger.h"

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
  if (options.capacity != kAutotune) return options;
  for (int64_t* bytes :
       {&options.capacity_bytes, &options.device_capacity_bytes}) {
    if (*bytes == 0) *bytes = TensorBuffer::kTunedCapacityBytes;
  }
  return options;
}

// Of a clock that never jumps.
int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TensorBuffer::TensorBuffer(Options options)
    : Stage(options.name),
      options_(WithDefaults(std::move(options))),
      room_(options_.capacity, options_.capacity_bytes,
            options_.device_capacity_bytes),
      timer_(Env::Default(), strings::StrCat(options_.name, "_deadlines"),
             [this](uint64_t id) { OnDeadline(id); }) {}

TensorBuffer::~TensorBuffer() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  while (!puts_.empty()) {
    WaitingPut put = puts_.RemoveOldest();
    due.GiveBack(put.stored.reads);
    due.Add(std::move(put.done), CancelledStatus());
    due.Destroy(std::move(put.stored));
  }
  GiveBackRecords(&due);
  CancelTakes(&due);
  gate_.EndWaiting(CancelledStatus(), &due);
}

void TensorBuffer::PutAsync(Record record, int64_t timeout_millis,
                            CancellationManager* cancellation, PutDone done,
                            StagedRun* run) {
  StoredRecord stored;
  stored.record = std::move(record);
  const bool is_admitted = run != nullptr && run->is_admitted();
  if (run != nullptr) stored.reads = run->reads();
  stored.bytes = CountedBytes(stored);
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  const bool late = cancelled_ || state_ == State::kClosed;
  if (late && !is_admitted) {
    due.Add(std::move(done), CancelledStatus());
    return;
  }
  if (is_admitted) {
    // All that is left of the run is to wait for room.
    gate_.Leave({run->producer()}, &due);
    run->NoteOver();
  }
  if (run != nullptr && run->IsStale()) {
    DropStale(std::move(stored), std::move(done), &due);
  } else {
    if (state_ == State::kIdle) Open(&due);
    if (run != nullptr) {
      is_new_ = false;
      gate_.PassFailed(run->producer(), run->reads(), &due);
    }
    if (!takes_.empty()) {
      if (GiveToTake(&stored, &due)) {
        due.Add(std::move(done), OkStatus());
      } else {
        DropStale(std::move(stored), std::move(done), &due);
      }
    } else if (late || (puts_.empty() && HasRoom(stored.bytes))) {
      Store(std::move(stored));
      due.Add(std::move(done), OkStatus());
    } else {
      WaitingPut put = {std::move(stored), std::move(done), NowMicros(),
                        is_admitted};
      AwaitRoom(std::move(put), timeout_millis, cancellation, &due);
    }
  }
  if (state_ == State::kEnding && HasEnded()) FinishEnding(&due);
}

void TensorBuffer::DropStale(StoredRecord stored, PutDone done,
                             DueCallbacks* due) {
  ++counters_.put;
  ++counters_.discarded;
  due->GiveBack(std::move(stored.reads));
  due->Destroy(std::move(stored));
  due->Add(std::move(done), OkStatus());
}

void TensorBuffer::AwaitRoom(WaitingPut put, int64_t timeout_millis,
                             CancellationManager* cancellation,
                             DueCallbacks* due) {
  // A buffer that lacks bytes gains nothing from more room.
  if (room_.HasBytes(stored_bytes_, put.stored.bytes)) {
    room_.OnFull(put.since_micros);
    if (room_.fills_slowly() && !program_watch_.has_value()) WatchProgram();
  }
  if (!Wait(&puts_, cancellation, timeout_millis, &put)) {
    EndPut(std::move(put), CancelledStatus(), due);
  }
}

void TensorBuffer::EndPut(WaitingPut put, const Status& status,
                          DueCallbacks* due) {
  due->Add(std::move(put.done), status);
  due->GiveBack(std::move(put.stored.reads));
  due->Destroy(std::move(put.stored));
}

void TensorBuffer::TakeAsync(CancellationManager* cancellation, TakeDone done,
                             const StagedRun* run) {
  const bool uses = run == nullptr;
  ScopedDueCallbacks due;
  std::optional<int64_t> settled;
  {
    mutex_lock l(mu_);
    if (state_ == State::kClosed && records_.empty() && is_retried_ &&
        !cancelled_) {
      // Something was not initialised, and may be now.
      Open(&due);
      AdmitRuns(&due);
    }
    // A stage that was cancelled gives its end to all steps, but to one run of
    // another stage only, which passes it on.
    const bool is_passed_on = !uses && cancelled_ && is_end_taken_;
    if (auto stored = RemoveOldest(uses, &due)) {
      GiveOldest(*std::move(stored), std::move(done), &due);
      settled = room_.NewlySettled();
    } else if (state_ == State::kClosed && !is_passed_on &&
               IsEndValid(uses, &due)) {
      GiveEnd(uses, std::move(done), &due);
    } else {
      WaitingTake take = {std::move(done), NowMicros(), uses};
      if (takes_cancelled_ ||
          !Wait(&takes_, cancellation,
                state_ == State::kIdle ? options_.idle_timeout_millis : 0,
                &take)) {
        due.AddTake(std::move(take.done), CancelledStatus());
      }
    }
  }
  if (settled.has_value()) {
    LOG(INFO) << absl::StrCat("Stage '", options_.name,
                              "' has settled on a capacity of ", *settled,
                              " record", *settled == 1 ? "" : "s", " (within ",
                              options_.capacity_bytes >> 20, " MiB).");
  }
}

void TensorBuffer::Cancel() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  CancelRuns(&due);
  takes_cancelled_ = true;
  CancelTakes(&due);
}

void TensorBuffer::CancelRuns() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  CancelRuns(&due);
}

void TensorBuffer::CancelRuns(DueCallbacks* due) {
  cancelled_ = true;
  if (state_ == State::kEnding) FinishEnding(due);
  while (!puts_.empty()) {
    if (puts_.oldest().is_admitted) {
      AdmitOldestPut(due);
    } else {
      EndPut(puts_.RemoveOldest(), CancelledStatus(), due);
    }
  }
  gate_.EndWaiting(CancelledStatus(), due);
  gate_.GiveBackFailed(due);
}

void TensorBuffer::Resume() {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  cancelled_ = false;
  takes_cancelled_ = false;
  gate_.ForgetFailed(&due);
  if (is_closing() && !is_end_taken_ && !is_retried_) {
    if (end_reads_ != nullptr && !end_reads_->empty()) {
      due.GiveBack(std::move(end_reads_));
    } else if (!errors::IsOutOfRange(end_status_) &&
               !errors::IsCancelled(end_status_)) {
      return;  // A step gets it first.
    }
  }
  Open(&due);
  AdmitRuns(&due);
}

void TensorBuffer::Close(const Status& cause, ProducerId producer) {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  if (is_closing()) {
    // Takes get the end that came before this one. What failed runs have read is given
    // back, and their errors come again with it. Of several ends of the data, takes
    // get the one that was read first: FinishEnding chooses.
    gate_.GiveBackFailed(&due,
                         /*keeps_ends=*/errors::IsOutOfRange(end_status_));
    return;
  }
  std::optional<RunGate::Report> report = gate_.TakeReport(cause, producer);
  if (!report.has_value()) return;
  state_ = State::kEnding;
  is_retried_ = errors::IsFailedPrecondition(cause) && is_new_ &&
                report->reads != nullptr;
  end_status_ = cause.ok() ? errors::OutOfRange("Stage '", options_.name,
                                                "' has reached the end of its "
                                                "data.")
                           : cause;
  end_producer_ = report->producer;
  end_reads_ = std::move(report->reads);
  if (end_reads_ != nullptr && !is_retried_) {
    gate_.PassFailed(*end_producer_, end_reads_, &due);
  }
  if (HasEnded()) FinishEnding(&due);
}

std::string TensorBuffer::KeepRecordsOn(const std::string& place) {
  mutex_lock l(mu_);
  if (place_of_records_.empty()) place_of_records_ = place;
  return place_of_records_;
}

Room TensorBuffer::FoundCapacity() const {
  mutex_lock l(mu_);
  return room_;
}

void TensorBuffer::GoOnWith(const Room& found) {
  mutex_lock l(mu_);
  room_.GoOnWith(found);
}

void TensorBuffer::HoldFewer(const Status& cause) {
  int64_t capacity = 0;
  {
    mutex_lock l(mu_);
    const bool is_first = counters_.kept_on_host++ == 0;
    if (!room_.HoldFewer(records_.size()) && !is_first) return;
    capacity = room_.capacity();
  }
  LOG(WARNING) << absl::StrCat(
      "Stage '", options_.name, "' keeps a record on the host, from where the ",
      "step copies it: ", cause.message(), " The stage holds ", capacity,
      " record", capacity == 1 ? "" : "s",
      " at most from now on. A smaller batch, model or capacity leaves room for "
      "more.");
}

int64_t TensorBuffer::Size() const {
  mutex_lock l(mu_);
  return records_.size();
}

bool TensorBuffer::AwaitNoTake(Done done) {
  mutex_lock l(mu_);
  if (takes_.empty()) return false;
  on_no_take_.push_back(std::move(done));
  return true;
}

int64_t TensorBuffer::TakenOrHeld() const {
  mutex_lock l(mu_);
  return counters_.taken + static_cast<int64_t>(records_.size());
}

std::string TensorBuffer::DebugString() const {
  mutex_lock l(mu_);
  return strings::StrCat(
      "TensorBuffer '", options_.name, "': ", StateName(),
      cancelled_ ? ", cancelled" : "", ", ", records_.size(), " of ",
      room_.capacity(), " records, ", counters_.put, " put, ", counters_.taken,
      " taken, ", counters_.dropped, " dropped, ", counters_.discarded,
      " discarded, ", gate_.active(), " runs active, ", gate_.waiting().size(),
      " runs, ", puts_.size(), " puts and ", takes_.size(), " takes waiting");
}

std::vector<TensorBuffer::Record> TensorBuffer::Records() const {
  std::vector<Record> records;
  records.reserve(records_.size());
  for (const StoredRecord& stored : records_) records.push_back(stored.record);
  return records;
}

MemoryBytes TensorBuffer::BytesOf(const std::vector<Record>& records) const {
  MemoryBytes bytes;
  for (const Record& record : records) bytes.Add(BytesOf(record));
  return bytes;
}

int64_t TensorBuffer::MemoryUsed() const {
  std::vector<Record> records;
  {
    mutex_lock l(mu_);
    records = Records();
  }
  return BytesOf(records).Total();
}

BufferStats TensorBuffer::GetStats() const {
  BufferStats stats;
  std::vector<Record> records;
  {
    mutex_lock l(mu_);
    records = Records();
    counters_.Write(&stats);
    stats.set_tunes_capacity(room_.tunes());
    stats.set_capacity_settled(room_.settled());
    stats.set_capacity(room_.capacity());
    stats.set_room(room_.records());
    stats.set_records(records_.size());
    stats.set_waiting_puts(puts_.size());
    stats.set_waiting_takes(takes_.size());
    stats.set_state(StateName());
    stats.set_error_code(end_status_.raw_code());
    stats.set_error_message(std::string(end_status_.message()));
  }
  const MemoryBytes bytes = BytesOf(records);
  stats.set_bytes(bytes.Total());
  for (const auto& [device, size] : bytes.on_devices) {
    stats.add_devices(device);
    stats.add_device_bytes(size);
  }
  stats.set_capacity_bytes(options_.capacity_bytes);
  stats.set_device_capacity_bytes(options_.device_capacity_bytes);
  return stats;
}

std::string TensorBuffer::Place() const {
  mutex_lock l(mu_);
  // What comes after a comma says more of it.
  return place_of_records_.substr(0, place_of_records_.find(','));
}

MemoryBytes TensorBuffer::BytesOf(const Record& record) const {
  MemoryBytes bytes;
  for (const Tensor& tensor : record) {
    const std::string place =
        options_.place_of == nullptr
            ? ""
            : options_.place_of(tensor, [this] { return Place(); });
    (place.empty() ? bytes.on_host : bytes.On(place)) += tensor.TotalBytes();
  }
  return bytes;
}

MemoryBytes TensorBuffer::CountedBytes(const StoredRecord& stored) const {
  if (options_.capacity_bytes <= 0 && options_.device_capacity_bytes <= 0) {
    return {};
  }
  MemoryBytes bytes = BytesOf(stored.record);
  if (stored.reads == nullptr) return bytes;
  stored.reads->ForEach([&stored, &bytes](const HeldEntry& entry) {
    for (const Tensor& tensor : entry.outcome->element) {
      // The region may pass tensors of its elements on.
      if (absl::c_none_of(stored.record, [&tensor](const Tensor& other) {
            return tensor.SharesBufferWith(other);
          })) {
        bytes.on_host += tensor.TotalBytes();
      }
    }
  });
  return bytes;
}

bool TensorBuffer::HasRoom(const MemoryBytes& bytes) const {
  return records_.empty() ||
         (static_cast<int64_t>(records_.size()) < room_.records() &&
          room_.HasBytes(stored_bytes_, bytes));
}

void TensorBuffer::Store(StoredRecord stored) {
  stored_bytes_.Add(stored.bytes);
  records_.push_back(std::move(stored));
  ++counters_.put;
}

bool TensorBuffer::GiveToTake(StoredRecord* stored, DueCallbacks* due) {
  if (takes_.oldest().uses && stored->reads != nullptr &&
      !stored->reads->Use()) {
    return false;
  }
  WaitingTake take = RemoveTake(takes_.oldest_id(), due);
  const int64_t now = NowMicros();
  const int64_t waited = now - take.since_micros;
  counters_.take_waits.Add(waited);
  counters_.steps.OnTake(take.since_micros, now);
  room_.OnTakeWaited(waited);
  ++counters_.put;
  ++counters_.taken;
  due->AddTake(std::move(take.done), OkStatus(), std::move(*stored));
  return true;
}

std::optional<TensorBuffer::StoredRecord> TensorBuffer::RemoveOldest(
    bool uses, DueCallbacks* due) {
  while (true) {
    // What was full of stale records may have room now.
    if (records_.empty()) AdmitPuts(due);
    if (records_.empty()) return std::nullopt;
    StoredRecord stored = std::move(records_.front());
    records_.pop_front();
    stored_bytes_.Subtract(stored.bytes);
    const bool is_valid =
        stored.reads == nullptr ||
        (uses ? stored.reads->Use() : !stored.reads->is_stale());
    if (is_valid) return stored;
    ++counters_.discarded;
    due->Destroy(std::move(stored));
  }
}

void TensorBuffer::GiveOldest(StoredRecord stored, TakeDone done,
                              DueCallbacks* due) {
  ++counters_.taken;
  const int64_t now = NowMicros();
  room_.OnTake(records_.size(), counters_.steps.OnTake(now, now));
  AdmitPuts(due);
  due->AddTake(std::move(done), OkStatus(), std::move(stored));
}

void TensorBuffer::AdmitPuts(DueCallbacks* due) {
  while (!puts_.empty() && HasRoom(puts_.oldest().stored.bytes)) {
    AdmitOldestPut(due);
  }
}

void TensorBuffer::AdmitOldestPut(DueCallbacks* due) {
  WaitingPut put = puts_.RemoveOldest();
  counters_.put_waits.Add(NowMicros() - put.since_micros);
  Store(std::move(put.stored));
  due->Add(std::move(put.done), OkStatus());
}

void TensorBuffer::WatchProgram() {
  program_watch_ = next_id_++;
  const int64_t left = counters_.steps.PauseBegins() - NowMicros();
  timer_.Add(*program_watch_, std::max<int64_t>(left, 0));
}

void TensorBuffer::FillIfProgramPauses(DueCallbacks* due) {
  program_watch_.reset();
  if (puts_.empty() || !room_.fills_slowly()) return;
  if (NowMicros() < counters_.steps.PauseBegins()) {
    WatchProgram();
    return;
  }
  room_.OnPause();
  AdmitPuts(due);
}

void TensorBuffer::Open(DueCallbacks* due) {
  // From now on a record may come at any time, so takes wait without a
  // deadline.
  if (state_ == State::kIdle) {
    for (auto& [id, take] : takes_) take.watch.RemoveDeadline();
  }
  state_ = State::kOpen;
  is_end_taken_ = false;
  end_status_ = OkStatus();
  is_retried_ ? due->GiveBackElements(std::move(end_reads_))
              : due->Destroy({{}, std::move(end_reads_)});
  end_reads_ = nullptr;
  end_producer_.reset();
  is_retried_ = false;
}

void TensorBuffer::FinishEnding(DueCallbacks* due) {
  state_ = State::kClosed;
  TakeFirstEnd(due);
  while (state_ == State::kClosed && !takes_.empty() &&
         IsEndValid(takes_.oldest().uses, due)) {
    const bool uses = takes_.oldest().uses;
    GiveEnd(uses, RemoveTake(takes_.oldest_id(), due).done, due);
  }
}

void TensorBuffer::TakeFirstEnd(DueCallbacks* due) {
  if (!errors::IsOutOfRange(end_status_) || end_reads_ == nullptr) return;
  // Of several producers, the one that has read first ends the stage. What the
  // others have read after it comes again; what they have read of other sources
  // belongs to the end as well.
  while (std::shared_ptr<ReadSet> other = gate_.TakeEnd()) {
    if (other->IsBefore(*end_reads_)) end_reads_.swap(other);
    if (end_reads_->IsBefore(*other)) {
      due->GiveBack(std::move(other));
    } else {
      due->HandOver(std::move(other), end_reads_);
    }
  }
  gate_.PassIgnored(end_reads_, due);
}

bool TensorBuffer::IsEndValid(bool uses, DueCallbacks* due) {
  if (end_reads_ == nullptr ||
      (uses && !is_retried_ ? end_reads_->Use() : !end_reads_->is_stale())) {
    return true;
  }
  Open(due);
  AdmitRuns(due);
  return false;
}

void TensorBuffer::GiveEnd(bool uses, TakeDone done, DueCallbacks* due) {
  if (uses && is_retried_) due->GiveBackElements(std::move(end_reads_));
  due->AddTake(std::move(done), end_status_, {{}, std::move(end_reads_)});
  end_reads_ = nullptr;
  is_end_taken_ = true;
  if (!options_.goes_on || is_retried_ || cancelled_ ||
      !gate_.has_producers()) {
    return;
  }
  // As without a stage, the next step tries again.
  Open(due);
  AdmitRuns(due);
}

void TensorBuffer::CancelTakes(DueCallbacks* due) {
  while (!takes_.empty()) {
    due->AddTake(RemoveTake(takes_.oldest_id(), due).done, CancelledStatus());
  }
}

TensorBuffer::WaitingTake TensorBuffer::RemoveTake(uint64_t id,
                                                   DueCallbacks* due) {
  WaitingTake take = *takes_.Remove(id);
  if (takes_.empty()) {
    for (Done& done : on_no_take_) due->Add(std::move(done), OkStatus());
    on_no_take_.clear();
  }
  return take;
}

bool TensorBuffer::HasEnded() const {
  if (cancelled_ || gate_.active() == 0) return true;
  return !errors::IsOutOfRange(end_status_) && end_producer_.has_value() &&
         !gate_.IsEarlierActive(*end_producer_);
}

bool TensorBuffer::StartWatch(uint64_t id, CancellationManager* cancellation,
                              int64_t timeout_millis, Watch* watch) {
  // Watch does not wait for this callback, so the manager may run it when the
  // waiter, and with it the last reference to the buffer, is gone.
  if (cancellation != nullptr &&
      !watch->AwaitCancellation(
          cancellation, [buffer = core::WeakPtr<TensorBuffer>(this), id]() {
            if (core::RefCountPtr<TensorBuffer> ref = buffer.GetNewRef()) {
              ref->OnCancelled(id);
            }
          })) {
    return false;
  }
  if (timeout_millis > 0) {
    watch->AwaitDeadline(&timer_, id, MillisToMicros(timeout_millis));
  }
  return true;
}

void TensorBuffer::OnCancelled(uint64_t id) {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  if (auto put = puts_.Remove(id)) {
    EndPut(*std::move(put), CancelledStatus(), &due);
    // The next put may be smaller, and fit.
    AdmitPuts(&due);
  } else if (takes_.Find(id) != nullptr) {
    due.AddTake(RemoveTake(id, &due).done, CancelledStatus());
  } else if (auto run = gate_.waiting().Remove(id)) {
    due.Add(std::move(run->done), CancelledStatus());
  }
}

void TensorBuffer::OnDeadline(uint64_t id) {
  ScopedDueCallbacks due;
  int64_t timeouts = 0;
  int64_t capacity = 0;
  {
    mutex_lock l(mu_);
    capacity = room_.capacity();
    if (puts_.Find(id) != nullptr) {
      // No record is dropped while the buffer holds fewer than its capacity.
      room_.FillNow();
      AdmitPuts(&due);
    }
    if (auto put = puts_.Remove(id)) {
      // The program skips it.
      if (put->stored.reads != nullptr) put->stored.reads->Use();
      due.Add(std::move(put->done), OkStatus());
      due.Destroy(std::move(put->stored));
      AdmitPuts(&due);
      timeouts = ++counters_.dropped;
    } else if (const WaitingTake* take = takes_.Find(id)) {
      // Open may have removed the deadline meanwhile.
      if (take->watch.has_deadline()) {
        due.AddTake(RemoveTake(id, &due).done, NotFedStatus());
      }
    } else if (program_watch_ == id) {
      FillIfProgramPauses(&due);
    }
  }
  if (timeouts > 0) {
    LOG_EVERY_N_SEC(WARNING, 1) << absl::StrCat(
        "Stage '", options_.name, "' dropped a record: its buffer of ",
        capacity,
        " records had no room for it within timeout_millis, because "
        "consumers took records too slowly. Dropped so far: ",
        timeouts,
        ". A larger timeout_millis waits longer; that of tf.staged may "
        "be 0, which sets no limit.");
  }
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
