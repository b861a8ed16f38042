// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_TENSOR_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_TENSOR_BUFFER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/deadline_timer.h"

namespace tensorflow {
namespace staging {

// The bounded first-in-first-out buffer between the staged part of a graph,
// which puts records, and the training step, which takes them.
//
// Goal: nothing hangs, nothing is lost or doubled, and a step pays little. No
// call blocks: a put without room and a take without a record wait as entries
// of a list, and end by a callback. A put and a take that need not wait touch
// one mutex and nothing else; the price of being cancellable and of having a
// deadline is paid only by what waits.
//
//            Resume or first Put                 Close(status)
//     idle -----------------------> open ---------------------------> closed
//       |                            |  ^  ^                           |
//       |          Cancel            |  |  |          Resume           |
//       +----------------------------+  |  +---------------------------+
//                      |                | Resume
//                      +----------> cancelled
//
//   idle       nothing has fed the buffer yet: a take waits only for
//              idle_timeout_millis, then says what is missing.
//   open       puts wait for room, takes wait for records.
//   cancelled  puts, and takes once the records are used up, are CANCELLED.
//   closed     as cancelled, but takes get the end of the data (OUT_OF_RANGE),
//              or the cause given to Close. The first Close says why, and a
//              later Cancel does not hide it.
//
// Records outlive every change of state: what was put can be taken.
//
// Invariants, whenever the lock is free:
//   * takes wait only while there is no record and no waiting put;
//   * puts wait only while the oldest of them does not fit;
//   * puts and takes wait only in the states idle and open;
//   * a waiter is in its list, or its callback has been called or is about to
//     be: who takes it out of the list, under the lock, calls it. So each
//     callback runs exactly once.
//
// Thread-safe. Callbacks run without the lock, in the thread whose call let
// them go on, or in the timer's thread; they may call the buffer, and may drop
// the last reference to it. Whoever calls a method holds a reference during the
// call. Destruction ends what still waits with CANCELLED.
class TensorBuffer : public ResourceBase {
 public:
  using Record = std::vector<Tensor>;
  using PutDone = absl::AnyInvocable<void(const Status&)>;
  using TakeDone = absl::AnyInvocable<void(const Status&, Record)>;

  struct Options {
    // The stage's name, for errors, logs and the thread.
    std::string name;
    // How many records fit; at least 1.
    int64_t capacity = 1;
    // How many bytes fit; 0 sets no bound. A larger record is admitted when the
    // buffer is empty.
    int64_t capacity_bytes = 0;
    // How long a take waits for somebody to begin feeding the buffer.
    int64_t idle_timeout_millis = 5000;
    Env* env = Env::Default();
  };

  // Since construction. put == taken + Size().
  struct Counters {
    int64_t put = 0;      // records that came in
    int64_t taken = 0;    // records that went out
    int64_t dropped = 0;  // records whose put timed out
  };

  explicit TensorBuffer(Options options);
  ~TensorBuffer() override;

  // Puts `record`, after waiting for room where there is none. Puts that wait
  // are served in the order of their calls.
  //
  // `timeout_millis` bounds the wait; 0 does not. `cancellation` may be null.
  // `done` gets
  //   OK         if the record is in, or was dropped because the timeout passed
  //              (which is counted and logged);
  //   CANCELLED  if `cancellation`, Cancel, Close or destruction came first.
  void PutAsync(Record record, int64_t timeout_millis,
                CancellationManager* cancellation, PutDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Takes the oldest record, after waiting for one where there is none. Takes
  // that wait are served in the order of their calls.
  //
  // `cancellation` may be null. `done` gets OK and the record, or no record and
  //   OUT_OF_RANGE         after Close(OK);
  //   Close's status       after Close with an error;
  //   CANCELLED            if `cancellation`, Cancel or destruction came first;
  //   FAILED_PRECONDITION  if nothing began to feed the buffer in time.
  void TakeAsync(CancellationManager* cancellation, TakeDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends what waits with CANCELLED, and what comes until Resume. Does nothing
  // to a closed buffer.
  void Cancel() TF_LOCKS_EXCLUDED(mu_);

  // Opens the buffer, whatever its state. It keeps its records.
  void Resume() TF_LOCKS_EXCLUDED(mu_);

  // Says that no more records will come: OK at the end of the data, otherwise
  // the cause, which takes then report as it is.
  void Close(const Status& cause) TF_LOCKS_EXCLUDED(mu_);

  // How many records the buffer holds.
  int64_t Size() const TF_LOCKS_EXCLUDED(mu_);

  Counters GetCounters() const TF_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return options_.name; }

  std::string DebugString() const override TF_LOCKS_EXCLUDED(mu_);
  int64_t MemoryUsed() const override TF_LOCKS_EXCLUDED(mu_);

 private:
  enum class State { kIdle, kOpen, kCancelled, kClosed };

  // What may end a wait early.
  struct Watch {
    CancellationManager* cancellation = nullptr;
    CancellationToken token = CancellationManager::kInvalidToken;
    bool has_deadline = false;
    DeadlineTimer::Entry deadline;
  };

  struct Putter {
    Record record;
    int64_t bytes;
    PutDone done;
    Watch watch;
  };

  struct Taker {
    TakeDone done;
    Watch watch;
  };

  // By order of arrival. Ids are unique over both lists.
  using Putters = std::map<uint64_t, Putter>;
  using Takers = std::map<uint64_t, Taker>;

  struct StoredRecord {
    Record record;
    int64_t bytes;
  };

  // The callbacks that are due once the lock is released.
  class DueCallbacks;

  // The size that counts against capacity_bytes; 0 if nothing does.
  int64_t CountedBytes(const Record& record) const;
  bool HasRoom(int64_t bytes) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Store(Record record, int64_t bytes) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Admits waiting puts, oldest first, as long as they fit.
  void AdmitPutters(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Leaves any state for kOpen.
  void Open() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Goes to kCancelled or kClosed, where takes without a record get
  // `take_status`.
  void End(State state, Status take_status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAllWaits(const Status& put_status, const Status& take_status,
                   DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Arranges for OnCancelled(id) and, if timeout_millis > 0, OnDeadline(id).
  // Returns false, arranging nothing, if `cancellation` has begun already. The
  // waiter has to be in its list before the lock is released.
  bool StartWatch(uint64_t id, CancellationManager* cancellation,
                  int64_t timeout_millis, Watch* watch)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopWatch(Watch* watch) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropDeadline(Watch* watch) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Take a waiter out of its list, no longer watched.
  Putter Extract(Putters::iterator it) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Taker Extract(Takers::iterator it) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Both may come late, when waiter `id` has ended by itself; then they do
  // nothing.
  void OnCancelled(uint64_t id) TF_LOCKS_EXCLUDED(mu_);
  void OnDeadline(uint64_t id) TF_LOCKS_EXCLUDED(mu_);

  Status CancelledStatus() const;
  Status NeverFedStatus() const;

  const Options options_;

  mutable mutex mu_;
  State state_ TF_GUARDED_BY(mu_) = State::kIdle;
  // What a take gets when there is no record: in kCancelled and kClosed.
  Status end_status_ TF_GUARDED_BY(mu_);
  std::deque<StoredRecord> records_ TF_GUARDED_BY(mu_);
  int64_t stored_bytes_ TF_GUARDED_BY(mu_) = 0;
  Putters putters_ TF_GUARDED_BY(mu_);
  Takers takers_ TF_GUARDED_BY(mu_);
  uint64_t next_id_ TF_GUARDED_BY(mu_) = 0;
  Counters counters_ TF_GUARDED_BY(mu_);

  // Last, so that it is destroyed first: its thread uses everything above.
  // Called with mu_ held; it never holds its own lock while it calls back.
  DeadlineTimer timer_;

  TF_DISALLOW_COPY_AND_ASSIGN(TensorBuffer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_TENSOR_BUFFER_H_
