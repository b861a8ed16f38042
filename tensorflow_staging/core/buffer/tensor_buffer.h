// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_

#include <atomic>
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
#include "tensorflow_staging/core/buffer/deadline_timer.h"

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
//        Resume or                               no admitted run
//        first Put             Close             is active
//   idle ---------> open -----------------> ending ----------> closed
//                    ^                        |                  |
//                    +------------------------+------------------+
//                               Resume, Restart
//
//   idle    nothing has fed the buffer yet: a take waits only for
//           idle_timeout_millis, then says what is missing.
//   open    puts wait for room, takes wait for records.
//   ending  as open, for the runs that were admitted before Close.
//   closed  puts are CANCELLED; takes, once the records are used up, get the
//           end of the data (OUT_OF_RANGE), or the cause given to Close. The
//           first Close says why, and a later Cancel does not hide it.
//
// Beside that, the buffer is
//
//   cancelled   from Cancel until Resume: puts, and takes once the records are
//               used up, are CANCELLED, unless the buffer is closed;
//   restarting  from a Restart until its end: the data before it are thrown
//               away, so puts are accepted and discarded, and takes wait.
//
// A restart apart, records outlive every change of state: what was put can be
// taken.
//
// A stage that can be restarted has its runs admitted: each begins with
// BeginRunAsync, which lets it wait while the buffer is ending, closed or
// restarting, and ends with EndRun. So a restart, which waits for the admitted
// runs, knows that nothing of the old data is under way, and that nobody reads
// the source while it is exchanged. In other stages no run is ever active.
//
// Invariants, whenever the lock is free:
//   * takes wait only while there is no record and no waiting put;
//   * puts wait only while the oldest of them does not fit;
//   * puts wait only in the states open and ending, takes in idle too, and
//     neither while cancelled;
//   * while restarting there is no record and no waiting put, and the state is
//     idle or open;
//   * runs wait only while they may not begin, and restarts wait only while a
//     run is active;
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
  using RunDone = absl::AnyInvocable<void(const Status&)>;
  using RestartDone = absl::AnyInvocable<void(const Status&)>;

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
    // How long a restart waits for the runs that were admitted before it.
    int64_t restart_timeout_millis = 60000;
    Env* env = Env::Default();
  };

  // Since construction. put == taken + discarded + Size().
  struct Counters {
    int64_t put = 0;        // records that came in
    int64_t taken = 0;      // records that went out
    int64_t dropped = 0;    // records whose put timed out
    int64_t discarded = 0;  // records that a restart threw away
  };

  explicit TensorBuffer(Options options);
  ~TensorBuffer() override;

  // Puts `record`, after waiting for room where there is none. Puts that wait
  // are served in the order of their calls.
  //
  // `timeout_millis` bounds the wait; 0 does not. `cancellation` may be null.
  // `done` gets
  //   OK         if the record is in, was dropped because the timeout passed,
  //              or discarded by a restart (both are counted and logged);
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

  // Ends what waits with CANCELLED, and what comes until Resume; only restarts
  // go on. To takes, a closed buffer stays closed.
  void Cancel() TF_LOCKS_EXCLUDED(mu_);

  // Opens the buffer, whatever its state. It keeps its records.
  void Resume() TF_LOCKS_EXCLUDED(mu_);

  // Says that no more records will come: OK at the end of the data, otherwise
  // the cause, which takes then report as it is. The runs that are active may
  // still put theirs.
  //
  // Does nothing if it is about the data before a restart: while restarting,
  // or if no admitted run has failed since, but one before whose Close has not
  // come yet.
  void Close(const Status& cause) TF_LOCKS_EXCLUDED(mu_);

  // Admits a run of the staged part, after waiting until the buffer is idle or
  // open, and not restarting. Without an error, EndRun has to follow.
  //
  // `cancellation` may be null. `done` gets OK, or CANCELLED if `cancellation`,
  // Cancel or destruction came first.
  void BeginRunAsync(CancellationManager* cancellation, RunDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends an admitted run. `has_put` tells whether it put a record; if not, a
  // Close may follow.
  void EndRun(bool has_put) TF_LOCKS_EXCLUDED(mu_);

  // Whether runs have ever been admitted. Cheap.
  bool AdmitsRuns() const {
    return admits_runs_.load(std::memory_order_relaxed);
  }

  // Begins a restart: throws the records away, and waits until no run is
  // active. Without an error, EndRestart has to follow. Restarts may overlap.
  //
  // `cancellation` may be null. `done` gets
  //   OK                 if no run is active, and none is until EndRestart;
  //   CANCELLED          if `cancellation` or destruction came first;
  //   DEADLINE_EXCEEDED  if a run did not end in time.
  void RestartAsync(CancellationManager* cancellation, RestartDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends a restart. The last one to end has the waiting runs begin.
  void EndRestart() TF_LOCKS_EXCLUDED(mu_);

  // How many records the buffer holds.
  int64_t Size() const TF_LOCKS_EXCLUDED(mu_);

  Counters GetCounters() const TF_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return options_.name; }

  std::string DebugString() const override TF_LOCKS_EXCLUDED(mu_);
  int64_t MemoryUsed() const override TF_LOCKS_EXCLUDED(mu_);

 private:
  enum class State { kIdle, kOpen, kEnding, kClosed };

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

  // A run that waits to begin, or a restart that waits for runs.
  struct Waiter {
    absl::AnyInvocable<void(const Status&)> done;
    Watch watch;
  };

  // By order of arrival. Ids are unique over all lists.
  using Putters = std::map<uint64_t, Putter>;
  using Takers = std::map<uint64_t, Taker>;
  using Waiters = std::map<uint64_t, Waiter>;

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
  // Leaves kEnding, in which no run is to put a record any more.
  void FinishEnding(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndPuts(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndTakes(const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // tensor_buffer_restart.cc has what is about runs and restarts.
  bool MayBegin() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdmitRuns(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DiscardRecords(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends one restart, and returns how many records were thrown away if it was
  // the last.
  int64_t LeaveRestart(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogDiscarded(int64_t discarded) const;
  void EndWaiters(Waiters* waiters, const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes `done` wait in `waiters`, or end if `cancellation` has begun already.
  // Returns whether it waits.
  bool AddWaiter(CancellationManager* cancellation, int64_t timeout_millis,
                 absl::AnyInvocable<void(const Status&)> done, Waiters* waiters,
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
  Waiter Extract(Waiters* waiters, Waiters::iterator it)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Both may come late, when waiter `id` has ended by itself; then they do
  // nothing.
  void OnCancelled(uint64_t id) TF_LOCKS_EXCLUDED(mu_);
  void OnDeadline(uint64_t id) TF_LOCKS_EXCLUDED(mu_);

  Status CancelledStatus() const;
  Status NeverFedStatus() const;
  Status RunsGoOnStatus() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;

  mutable mutex mu_;
  State state_ TF_GUARDED_BY(mu_) = State::kIdle;
  // What a take without a record gets in kClosed; known from kEnding on.
  Status end_status_ TF_GUARDED_BY(mu_);
  bool cancelled_ TF_GUARDED_BY(mu_) = false;
  std::deque<StoredRecord> records_ TF_GUARDED_BY(mu_);
  int64_t stored_bytes_ TF_GUARDED_BY(mu_) = 0;
  Putters putters_ TF_GUARDED_BY(mu_);
  Takers takers_ TF_GUARDED_BY(mu_);
  uint64_t next_id_ TF_GUARDED_BY(mu_) = 0;
  Counters counters_ TF_GUARDED_BY(mu_);

  std::atomic<bool> admits_runs_{false};
  // Runs that may not begin yet, and how many did and have not ended.
  Waiters waiting_runs_ TF_GUARDED_BY(mu_);
  int64_t active_runs_ TF_GUARDED_BY(mu_) = 0;
  // Restarts that wait for runs, and how many have begun and not ended.
  Waiters waiting_restarts_ TF_GUARDED_BY(mu_);
  int64_t restarts_ TF_GUARDED_BY(mu_) = 0;
  // counters_.discarded when the first of restarts_ began.
  int64_t discarded_before_ TF_GUARDED_BY(mu_) = 0;
  // Since the last restart: admitted runs that ended without a record, and
  // calls of Close. Each of those runs may be followed by a Close; late_closes_
  // is how many such of the time before may still come.
  int64_t failed_runs_ TF_GUARDED_BY(mu_) = 0;
  int64_t closes_ TF_GUARDED_BY(mu_) = 0;
  int64_t late_closes_ TF_GUARDED_BY(mu_) = 0;

  // Last, so that it is destroyed first: its thread uses everything above.
  // Called with mu_ held; it never holds its own lock while it calls back.
  DeadlineTimer timer_;

  TF_DISALLOW_COPY_AND_ASSIGN(TensorBuffer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
