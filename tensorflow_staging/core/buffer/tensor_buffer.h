// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
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
#include "tensorflow_staging/core/buffer/capacity_tuner.h"
#include "tensorflow_staging/core/buffer/deadline_timer.h"
#include "tensorflow_staging/core/buffer/slow_start.h"
#include "tensorflow_staging/core/buffer/wait_times.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"

namespace tensorflow {
namespace staging {

// The bounded first-in-first-out buffer of a stage: the region puts records,
// and the training step takes them.
//
// Goals: nothing hangs, no record is lost or duplicated, and the step pays
// little. No call blocks: a put without room and a take without a record wait
// in a list, and a callback reports their end. A put or a take that need not
// wait only locks one mutex; cancellation and deadlines cost something only
// when a call waits.
//
//        Resume or                               no admitted run
//        first Put             Close             is active
//   idle ---------> open -----------------> ending ----------> closed
//                    ^                        |                  |
//                    +------------------------+------------------+
//                               Resume, Restart
//
//   idle    Nothing has fed the buffer yet. A take waits only for
//           idle_timeout_millis, then fails with an error that names the
//           missing hook.
//   open    Puts wait for room, takes wait for records.
//   ending  Like open, for the runs that were admitted before Close.
//   closed  New puts fail with CANCELLED; those that wait still get their room.
//           Takes drain the records, then fail with the end of the data
//           (OUT_OF_RANGE) or the cause given to Close. The first Close decides
//           which, and a later Cancel does not hide it.
//
// Independently of its state, the buffer may be
//
//   cancelled   from Cancel until Resume: the runs that are under way put
//               their records even without room, because a record that has
//               left its sources must stay for the next runner, or for a
//               checkpoint. Such a run is admitted, or says so by `kept`. Other
//               puts fail with CANCELLED, and so do takes when no record is
//               left, unless the buffer is closed;
//   restarting  from RestartAsync until the restart ends: the buffer discards
//               the data before the restart, so it accepts puts and discards
//               their records, and takes wait;
//   paused      from PauseAsync until the pause ends: no run begins, so that
//               a checkpoint can keep the records beside the positions of the
//               sources. Puts and takes go on.
//
// Apart from a restart, records survive every change of state: a record that
// was put can be taken.
//
// The buffer admits the runs of a stage that can restart or be saved: each run
// begins with BeginRunAsync, which waits while the buffer is ending, closed,
// restarting or paused, and ends with EndRun. A restart waits for the admitted
// runs. After that, no run processes the old data, and no run reads the source
// while the source is initialised again. In other stages no run is ever active.
//
// Invariants, whenever the lock is free:
//   * Takes wait only while there is no record and no waiting put.
//   * Puts wait only while the oldest of them does not fit.
//   * Puts wait only in the states open, ending and closed, takes only in idle,
//     open and ending, and neither waits while the buffer is cancelled.
//   * While restarting, there is no record and no waiting put, and the state is
//     idle or open.
//   * Runs wait only while they may not begin, restarts only while a run is
//     active, and pauses only while the stage is not quiet.
//   * A waiter is in its list, or its callback has run or is about to run. The
//     thread that removes a waiter from its list, under the lock, runs its
//     callback, so each callback runs exactly once.
//
// Thread-safe. Callbacks run without the lock, in the thread of the call that
// ended the wait, or in the timer's thread. They may call the buffer, and may
// release the last reference to it. The caller of a method must hold a
// reference during the call. The destructor ends every wait with CANCELLED.
class TensorBuffer : public ResourceBase {
 public:
  using Record = std::vector<Tensor>;
  using PutDone = absl::AnyInvocable<void(const Status&)>;
  using TakeDone = absl::AnyInvocable<void(const Status&, Record)>;
  using RunDone = absl::AnyInvocable<void(const Status&)>;
  using RestartDone = absl::AnyInvocable<void(const Status&)>;
  using PauseDone = absl::AnyInvocable<void(const Status&)>;

  struct Options {
    // The stage's name, for errors, logs and the name of the timer's thread.
    std::string name;
    // How many records the buffer holds: at least 1, or kAutotune, with
    // which the buffer chooses (CapacityTuner). At first it may have less room,
    // so that filling it takes nothing from the steps (SlowStart).
    int64_t capacity = 1;
    // How many bytes the buffer holds; 0 sets no bound or, if the buffer
    // chooses its capacity, means kTunedCapacityBytes. An empty buffer admits
    // even a larger record.
    int64_t capacity_bytes = 0;
    // How long a take waits for the first put or Resume.
    int64_t idle_timeout_millis = 5000;
    // How long a restart or a pause waits for the runs admitted before it.
    int64_t restart_timeout_millis = 60000;
    Env* env = Env::Default();
  };

  // Counted since construction. put == taken + discarded + Size().
  struct Counters {
    int64_t put = 0;        // Records that the buffer accepted.
    int64_t taken = 0;      // Records that takes received.
    int64_t dropped = 0;    // Records whose put timed out.
    int64_t discarded = 0;  // Records that a restart discarded.
  };

  // Chosen, not measured: many records of most models.
  static constexpr int64_t kTunedCapacityBytes = int64_t{512} << 20;

  explicit TensorBuffer(Options options);
  ~TensorBuffer() override;

  // Puts `record`, after waiting for room if there is none. Waiting puts are
  // served in the order of their calls.
  //
  // `timeout_millis` bounds the wait; 0 sets no bound. `cancellation` may be
  // null. `kept` says that the put belongs to a producer that ends with its
  // current run when the buffer is cancelled. `done` receives
  //   OK         if the record was stored or taken, if it was dropped because
  //              the timeout passed, or if a restart discarded it (drops and
  //              discards are counted and logged);
  //   CANCELLED  if `cancellation` or the destructor came first, or, unless an
  //              admitted run is active, if the buffer was closed before the
  //              call, or if Cancel came first and the record is not kept.
  void PutAsync(Record record, int64_t timeout_millis,
                CancellationManager* cancellation, PutDone done,
                bool kept = false) TF_LOCKS_EXCLUDED(mu_);

  // Takes the oldest record, after waiting for one if there is none. Waiting
  // takes are served in the order of their calls.
  //
  // `cancellation` may be null. `done` receives OK and the record, or no record
  // and
  //   OUT_OF_RANGE         after Close(OK);
  //   Close's status       after Close with an error;
  //   CANCELLED            if `cancellation`, Cancel or the destructor came
  //                        first;
  //   FAILED_PRECONDITION  if nothing fed the buffer within
  //                        idle_timeout_millis.
  void TakeAsync(CancellationManager* cancellation, TakeDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends waiting puts, takes and runs with CANCELLED, and likewise those that
  // come before Resume. Stores the records of active runs and, in a stage that
  // admits none, those that are kept: as many as a stage has producers at most.
  // Restarts and pauses continue. For takes, a closed buffer stays closed.
  void Cancel() TF_LOCKS_EXCLUDED(mu_);

  // Opens the buffer from any state. Keeps the records.
  void Resume() TF_LOCKS_EXCLUDED(mu_);

  // Declares that no more records will come. `cause` is OK at the end of the
  // data; otherwise it is the error that ended the stage, and takes report it
  // unchanged. Active runs may still put their records, and puts that wait are
  // still served, so that no finished record is lost.
  //
  // Ignores a Close that belongs to the data before a restart: one that comes
  // during the restart, or one that comes later, when no admitted run has
  // failed since the restart but a run that failed before it still owes its
  // Close.
  void Close(const Status& cause) TF_LOCKS_EXCLUDED(mu_);

  // Admits a run of the region, after waiting until the buffer is idle or open,
  // neither restarting nor paused. After OK, the caller must call EndRun.
  //
  // `cancellation` may be null. `done` receives OK, or CANCELLED if
  // `cancellation`, Cancel or the destructor came first.
  void BeginRunAsync(CancellationManager* cancellation, RunDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends an admitted run. `has_put` says whether the run put a record; if it
  // did not, a Close may follow. What waited for the end goes on in another
  // thread, also after EndRestart and EndPause.
  void EndRun(bool has_put) TF_LOCKS_EXCLUDED(mu_);

  // Whether BeginRunAsync has ever been called. Takes no lock.
  bool AdmitsRuns() const {
    return admits_runs_.load(std::memory_order_relaxed);
  }

  // Begins a restart: discards the records, and waits until no run is active.
  // After OK, the caller must call EndRestart. Restarts may overlap.
  //
  // `cancellation` may be null. `done` receives
  //   OK                 if no run is active; none begins before EndRestart;
  //   CANCELLED          if `cancellation` or the destructor came first;
  //   DEADLINE_EXCEEDED  if a run did not end within restart_timeout_millis.
  void RestartAsync(CancellationManager* cancellation, RestartDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends a restart. When the last restart ends, the waiting runs begin.
  void EndRestart() TF_LOCKS_EXCLUDED(mu_);

  // Gives the stage `records`, which a checkpoint has kept, oldest first. They
  // can be taken when the restart ends, before any record of a later run, even
  // if they are more than the capacity. Returns FAILED_PRECONDITION if the
  // buffer is not restarting.
  Status Restore(std::vector<Record> records) TF_LOCKS_EXCLUDED(mu_);

  // Begins a pause: waits until the stage is quiet, which means that each
  // active run has nothing left to do but to wait for room. So each record that
  // came out of the sources is in Records() or has been taken. After OK, the
  // caller must call EndPause. Pauses may overlap.
  //
  // `cancellation` may be null. `done` receives
  //   OK                   if the stage is quiet; no run begins before the
  //                        call of EndPause;
  //   CANCELLED            if `cancellation` or the destructor came first;
  //   DEADLINE_EXCEEDED    if the stage was not quiet within
  //                        restart_timeout_millis;
  //   FAILED_PRECONDITION  if the runs of this stage put records without
  //                        BeginRunAsync, so that no pause could stop them.
  void PauseAsync(CancellationManager* cancellation, PauseDone done)
      TF_LOCKS_EXCLUDED(mu_);

  // Ends a pause. When the last pause ends, the waiting runs begin.
  void EndPause() TF_LOCKS_EXCLUDED(mu_);

  // Returns references to all records, oldest first, including those that wait
  // for room.
  std::vector<Record> Records() const TF_LOCKS_EXCLUDED(mu_);

  // Returns the device in whose memory the tensors of the records are: the
  // `device` of the first call.
  std::string KeepRecordsOn(const std::string& device) TF_LOCKS_EXCLUDED(mu_);

  // How many records the buffer holds.
  int64_t Size() const TF_LOCKS_EXCLUDED(mu_);

  Counters GetCounters() const TF_LOCKS_EXCLUDED(mu_);

  BufferStats GetStats() const TF_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return options_.name; }

  std::string DebugString() const override TF_LOCKS_EXCLUDED(mu_);
  int64_t MemoryUsed() const override TF_LOCKS_EXCLUDED(mu_);

 private:
  enum class State { kIdle, kOpen, kEnding, kClosed };

  // The cancellation and the deadline that may end a wait early.
  struct Watch {
    CancellationManager* cancellation = nullptr;
    CancellationToken token = CancellationManager::kInvalidToken;
    bool has_deadline = false;
    DeadlineTimer::Entry deadline;
  };

  struct WaitingPut {
    Record record;
    int64_t bytes;
    PutDone done;
    Watch watch;
    int64_t since_micros;
    bool kept;
  };

  struct WaitingTake {
    TakeDone done;
    Watch watch;
    int64_t since_micros;
  };

  // A run that waits to begin, or a restart or pause that waits for runs.
  struct Waiter {
    absl::AnyInvocable<void(const Status&)> done;
    Watch watch;
  };

  // By id, and so in the order of arrival. Ids are unique over all lists.
  using WaitingPuts = std::map<uint64_t, WaitingPut>;
  using WaitingTakes = std::map<uint64_t, WaitingTake>;
  using Waiters = std::map<uint64_t, Waiter>;

  struct StoredRecord {
    Record record;
    int64_t bytes;
  };

  // The callbacks to run after the lock is released.
  class DueCallbacks;

  // Of a clock that never jumps.
  static int64_t NowMicros();

  // The size that counts against capacity_bytes; 0 if that sets no bound.
  int64_t CountedBytes(const Record& record) const;
  // Whether capacity_bytes allows `bytes` more.
  bool HasBytes(int64_t bytes) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasRoom(int64_t bytes) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether a put that comes while the buffer is cancelled is stored.
  bool KeepsLatePut(bool kept) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Store(Record record, int64_t bytes) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stores the records of waiting puts, oldest first, as long as they fit.
  void AdmitPuts(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stores the records of waiting puts that Cancel keeps, whether they fit or
  // not, and ends the others.
  void KeepOrEndPuts(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdmitOldestPut(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // How many records the buffer holds; implemented in
  // tensor_buffer_capacity.cc.
  bool TunesCapacity() const { return options_.capacity == kAutotune; }
  int64_t Capacity() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many records the buffer may hold now; at most its capacity.
  int64_t Room() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes that a put waits for room.
  void CountFull() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes that a take has removed a record.
  void CountTake() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes that `take` has received a record.
  void CountWaitingTake(const WaitingTake& take)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Arranges for FillIfProgramPauses at the time from which on the program
  // pauses if it takes no record.
  void WatchProgram() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Lets the buffer fill if the program pauses, or watches on.
  void FillIfProgramPauses(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the capacity if the buffer has settled on another one than it last
  // reported.
  std::optional<int64_t> NewlySettled() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogSettled(std::optional<int64_t> capacity) const;

  // Changes from any state to kOpen.
  void Open() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Leaves kEnding, once no run can put another record.
  void FinishEnding(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndPuts(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndTakes(const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Runs and restarts; implemented in tensor_buffer_restart.cc.
  bool MayBegin() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdmitRuns(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DiscardRecords(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends one restart. If it was the last, returns how many records were
  // discarded; otherwise 0.
  int64_t LeaveRestart(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogDiscarded(int64_t discarded) const;

  // Checkpoints; implemented in tensor_buffer_checkpoint.cc.
  bool IsQuiet() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartPausesIfQuiet(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LeavePause(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stores the restored records, or gives them to waiting takes.
  void AdmitRestored(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void EndWaiters(Waiters* waiters, const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds `done` to `waiters`, or ends it if `cancellation` has already begun.
  // Returns whether it waits.
  bool AddWaiter(CancellationManager* cancellation, int64_t timeout_millis,
                 absl::AnyInvocable<void(const Status&)> done, Waiters* waiters,
                 DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Arranges for OnCancelled(id) and, if timeout_millis > 0, OnDeadline(id).
  // Arranges nothing and returns false if `cancellation` has already begun. The
  // caller must add the waiter to its list before it releases the lock.
  bool StartWatch(uint64_t id, CancellationManager* cancellation,
                  int64_t timeout_millis, Watch* watch)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopWatch(Watch* watch) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveDeadline(Watch* watch) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Each removes a waiter from its list and stops its watch.
  WaitingPut Extract(WaitingPuts::iterator it) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  WaitingTake Extract(WaitingTakes::iterator it)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Waiter Extract(Waiters* waiters, Waiters::iterator it)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Both may be called after waiter `id` has left its list; they then do
  // nothing.
  void OnCancelled(uint64_t id) TF_LOCKS_EXCLUDED(mu_);
  void OnDeadline(uint64_t id) TF_LOCKS_EXCLUDED(mu_);

  const char* StateName() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CancelledStatus() const;
  Status NotFedStatus() const;
  Status RestartTimedOutStatus() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status PauseTimedOutStatus() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;

  mutable mutex mu_;
  std::string device_of_records_ TF_GUARDED_BY(mu_);
  State state_ TF_GUARDED_BY(mu_) = State::kIdle;
  // The result of a take without a record in kClosed; set from kEnding on.
  Status end_status_ TF_GUARDED_BY(mu_);
  bool cancelled_ TF_GUARDED_BY(mu_) = false;
  // How many puts have been stored since Cancel.
  int64_t late_puts_ TF_GUARDED_BY(mu_) = 0;
  std::deque<StoredRecord> records_ TF_GUARDED_BY(mu_);
  int64_t stored_bytes_ TF_GUARDED_BY(mu_) = 0;
  WaitingPuts waiting_puts_ TF_GUARDED_BY(mu_);
  WaitingTakes waiting_takes_ TF_GUARDED_BY(mu_);
  uint64_t next_id_ TF_GUARDED_BY(mu_) = 0;
  Counters counters_ TF_GUARDED_BY(mu_);
  // Of the puts that counters_.put counts, and of the takes.
  WaitTimes put_waits_ TF_GUARDED_BY(mu_);
  WaitTimes take_waits_ TF_GUARDED_BY(mu_);
  // Of a buffer that chooses its capacity.
  CapacityTuner tuner_ TF_GUARDED_BY(mu_);
  int64_t reported_capacity_ TF_GUARDED_BY(mu_) = 0;
  // Of a buffer whose capacity is given. The timer reports the id when the
  // program may pause.
  SlowStart slow_start_ TF_GUARDED_BY(mu_);
  std::optional<uint64_t> program_watch_ TF_GUARDED_BY(mu_);

  std::atomic<bool> admits_runs_{false};
  // Whether a put came before the first run was admitted.
  bool has_unadmitted_put_ TF_GUARDED_BY(mu_) = false;
  // Runs that may not begin yet, and the number of runs that have begun and not
  // ended.
  Waiters waiting_runs_ TF_GUARDED_BY(mu_);
  int64_t active_runs_ TF_GUARDED_BY(mu_) = 0;
  // Restarts that wait for runs, and the number of restarts that have begun and
  // not ended, waiting ones included.
  Waiters waiting_restarts_ TF_GUARDED_BY(mu_);
  int64_t restarts_ TF_GUARDED_BY(mu_) = 0;
  // The value of counters_.discarded when the first of these restarts began.
  int64_t discarded_before_ TF_GUARDED_BY(mu_) = 0;
  // Since the last restart or Resume: the number of admitted runs that ended
  // without a record, and the number of calls of Close. Each of those runs may
  // be followed by a Close. late_closes_ is the number of calls of Close that
  // may still follow the failed runs of the time before.
  int64_t failed_runs_ TF_GUARDED_BY(mu_) = 0;
  int64_t closes_ TF_GUARDED_BY(mu_) = 0;
  int64_t late_closes_ TF_GUARDED_BY(mu_) = 0;

  // The records to store when the restart ends.
  std::vector<Record> restored_ TF_GUARDED_BY(mu_);
  // Pauses that wait for runs, and the number of pauses that have begun and not
  // ended, waiting ones included.
  Waiters waiting_pauses_ TF_GUARDED_BY(mu_);
  int64_t pauses_ TF_GUARDED_BY(mu_) = 0;

  // The last member, so that it is destroyed first: its thread uses everything
  // above. It is called with mu_ held, and never holds its own lock while it
  // calls back.
  DeadlineTimer timer_;

  TF_DISALLOW_COPY_AND_ASSIGN(TensorBuffer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
