// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/tensor_buffer.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/strcat.h"

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

// Puts are called before takes: the end of a put only lets its producer go on,
// while the end of a take may run the whole training step right here, in a
// session that runs its kernels on the caller's thread.
//
// Run does not touch the buffer, since any callback may drop its last
// reference.
class TensorBuffer::DueCallbacks {
 public:
  void Put(PutDone done, Status status) {
    puts_.emplace_back(std::move(done), std::move(status));
  }

  void Take(TakeDone done, Status status, Record record) {
    takes_.emplace_back(std::move(done), std::move(status), std::move(record));
  }

  void Run() {
    for (auto& [done, status] : puts_) {
      done(status);
    }
    for (auto& [done, status, record] : takes_) {
      done(status, std::move(record));
    }
  }

 private:
  // A step that goes well has one of each at most.
  absl::InlinedVector<std::pair<PutDone, Status>, 1> puts_;
  absl::InlinedVector<std::tuple<TakeDone, Status, Record>, 1> takes_;
};

TensorBuffer::TensorBuffer(Options options)
    : options_(std::move(options)),
      timer_(options_.env, strings::StrCat(options_.name, "_deadlines"),
             [this](uint64_t id) { OnDeadline(id); }) {}

TensorBuffer::~TensorBuffer() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    EndAllWaits(CancelledStatus(), CancelledStatus(), &due);
  }
  due.Run();
}

void TensorBuffer::PutAsync(Record record, int64_t timeout_millis,
                            CancellationManager* cancellation, PutDone done) {
  const int64_t bytes = CountedBytes(record);
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (state_ == State::kIdle) Open();
    if (state_ != State::kOpen) {
      due.Put(std::move(done), CancelledStatus());
    } else if (!takers_.empty()) {
      Taker taker = Extract(takers_.begin());
      ++counters_.put;
      ++counters_.taken;
      due.Put(std::move(done), OkStatus());
      due.Take(std::move(taker.done), OkStatus(), std::move(record));
    } else if (putters_.empty() && HasRoom(bytes)) {
      Store(std::move(record), bytes);
      due.Put(std::move(done), OkStatus());
    } else {
      const uint64_t id = next_id_++;
      Watch watch;
      if (StartWatch(id, cancellation, timeout_millis, &watch)) {
        putters_.emplace_hint(
            putters_.end(), id,
            Putter{std::move(record), bytes, std::move(done), watch});
      } else {
        due.Put(std::move(done), CancelledStatus());
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
      AdmitPutters(&due);
      due.Take(std::move(done), OkStatus(), std::move(stored.record));
    } else if (state_ == State::kCancelled || state_ == State::kClosed) {
      due.Take(std::move(done), end_status_, Record());
    } else {
      const uint64_t id = next_id_++;
      const int64_t timeout_millis =
          state_ == State::kIdle ? options_.idle_timeout_millis : 0;
      Watch watch;
      if (StartWatch(id, cancellation, timeout_millis, &watch)) {
        takers_.emplace_hint(takers_.end(), id, Taker{std::move(done), watch});
      } else {
        due.Take(std::move(done), CancelledStatus(), Record());
      }
    }
  }
  due.Run();
}

void TensorBuffer::Cancel() {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (state_ == State::kIdle || state_ == State::kOpen) {
      End(State::kCancelled, CancelledStatus(), &due);
    }
  }
  due.Run();
}

void TensorBuffer::Resume() {
  mutex_lock l(mu_);
  Open();
}

void TensorBuffer::Close(const Status& cause) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (state_ != State::kClosed) {
      End(State::kClosed,
          cause.ok() ? errors::OutOfRange("Stage '", options_.name,
                                          "' has reached the end of its data.")
                     : cause,
          &due);
    }
  }
  due.Run();
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
    case State::kCancelled:
      state = "cancelled";
      break;
    case State::kClosed:
      state = "closed";
      break;
  }
  return strings::StrCat(
      "TensorBuffer '", options_.name, "': ", state, ", ", records_.size(),
      " of ", options_.capacity, " records, ", counters_.put, " put, ",
      counters_.taken, " taken, ", counters_.dropped, " dropped, ",
      putters_.size(), " puts and ", takers_.size(), " takes waiting");
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

void TensorBuffer::AdmitPutters(DueCallbacks* due) {
  while (!putters_.empty() && HasRoom(putters_.begin()->second.bytes)) {
    Putter putter = Extract(putters_.begin());
    Store(std::move(putter.record), putter.bytes);
    due->Put(std::move(putter.done), OkStatus());
  }
}

void TensorBuffer::Open() {
  // From now on a record may come at any time, so takes wait for it.
  if (state_ == State::kIdle) {
    for (auto& [id, taker] : takers_) DropDeadline(&taker.watch);
  }
  state_ = State::kOpen;
  end_status_ = OkStatus();
}

void TensorBuffer::End(State state, Status take_status, DueCallbacks* due) {
  state_ = state;
  end_status_ = std::move(take_status);
  EndAllWaits(CancelledStatus(), end_status_, due);
}

void TensorBuffer::EndAllWaits(const Status& put_status,
                               const Status& take_status, DueCallbacks* due) {
  while (!putters_.empty()) {
    due->Put(Extract(putters_.begin()).done, put_status);
  }
  while (!takers_.empty()) {
    due->Take(Extract(takers_.begin()).done, take_status, Record());
  }
}

bool TensorBuffer::StartWatch(uint64_t id, CancellationManager* cancellation,
                              int64_t timeout_millis, Watch* watch) {
  if (cancellation != nullptr) {
    const CancellationToken token = cancellation->get_cancellation_token();
    // The manager may run this when the waiter, and with it the last reference
    // to the buffer, are gone: StopWatch does not wait for it.
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
    // Waiting for a cancellation in progress could wait for ourselves: this may
    // be one of its callbacks.
    watch->cancellation->TryDeregisterCallback(watch->token);
    watch->cancellation = nullptr;
  }
  DropDeadline(watch);
}

void TensorBuffer::DropDeadline(Watch* watch) {
  if (watch->has_deadline) {
    timer_.Remove(watch->deadline);
    watch->has_deadline = false;
  }
}

TensorBuffer::Putter TensorBuffer::Extract(Putters::iterator it) {
  Putter putter = std::move(it->second);
  putters_.erase(it);
  StopWatch(&putter.watch);
  return putter;
}

TensorBuffer::Taker TensorBuffer::Extract(Takers::iterator it) {
  Taker taker = std::move(it->second);
  takers_.erase(it);
  StopWatch(&taker.watch);
  return taker;
}

void TensorBuffer::OnCancelled(uint64_t id) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    if (auto put = putters_.find(id); put != putters_.end()) {
      due.Put(Extract(put).done, CancelledStatus());
      // The next one may be smaller, and fit.
      AdmitPutters(&due);
    } else if (auto take = takers_.find(id); take != takers_.end()) {
      due.Take(Extract(take).done, CancelledStatus(), Record());
    }
  }
  due.Run();
}

void TensorBuffer::OnDeadline(uint64_t id) {
  DueCallbacks due;
  int64_t timeouts = 0;
  {
    mutex_lock l(mu_);
    if (auto put = putters_.find(id); put != putters_.end()) {
      due.Put(Extract(put).done, OkStatus());
      AdmitPutters(&due);
      timeouts = ++counters_.dropped;
    } else if (auto take = takers_.find(id);
               take != takers_.end() && take->second.watch.has_deadline) {
      due.Take(Extract(take).done, NeverFedStatus(), Record());
    }
  }
  if (timeouts > 0) {
    LOG_EVERY_N_SEC(WARNING, 1)
        << "Stage '" << options_.name << "' dropped a record: its buffer of "
        << options_.capacity << " records had no room for it in time, since "
        << "nobody took one. Dropped so far: " << timeouts
        << ". A larger timeout_millis waits longer; 0 waits without end.";
  }
  due.Run();
}

Status TensorBuffer::CancelledStatus() const {
  return errors::Cancelled("Stage '", options_.name, "' was cancelled.");
}

Status TensorBuffer::NeverFedStatus() const {
  return errors::FailedPrecondition(
      "Stage '", options_.name, "' has no running prefetcher: nothing fed it ",
      "for ", options_.idle_timeout_millis, " ms. Add tf.make_prefetch_hook() ",
      "to the hooks of the session that runs the training step.");
}

}  // namespace staging
}  // namespace tensorflow
