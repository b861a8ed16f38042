// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/buffer_counters.h"
#include "tensorflow_staging/core/buffer/deadline_timer.h"
#include "tensorflow_staging/core/buffer/due_callbacks.h"
#include "tensorflow_staging/core/buffer/memory_bytes.h"
#include "tensorflow_staging/core/buffer/room.h"
#include "tensorflow_staging/core/buffer/run_gate.h"
#include "tensorflow_staging/core/buffer/waiting_list.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/sources/lock_levels.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

// The bounded first-in-first-out buffer of a stage: the region puts records,
// and the training step takes them.
//
// Goals: nothing hangs, no record is lost or duplicated, none is stale, and the
// step pays little. No call blocks: a put without room and a take without a
// record wait in a list, and a callback reports their end. A put or a take that
// need not wait only locks one mutex; cancellation and deadlines cost something
// only when a call waits.
//
//        Resume or                            no run can put
//        first Put             Close          another record
//   idle ---------> open -----------------> ending ----------> closed
//                    ^                        |                  |
//                    +------------------------+------------------+
//                Resume, a roll-back of what ended the stage, or a take
//                that gets the end
//
//   idle    Nothing has fed the buffer yet. A take waits only for
//           idle_timeout_millis, then fails with an error that names the
//           missing hook.
//   open    Puts wait for room, takes wait for records.
//   ending  Like open, for the runs that were admitted before Close.
//   closed  New puts fail with CANCELLED, except those of admitted runs; those
//           that wait still get their room. Takes drain the records. The next
//           one gets the end of the data (OUT_OF_RANGE) or the cause given to
//           Close, and with it uses what the run had read that found it; then
//           the producers go on, as the program would without a stage. If there
//           are no producers, all takes get it. If the cause is that something
//           was not initialised, before the first record, a take opens the
//           buffer for another try.
//
// Independently of its state, the buffer may be
//
//   cancelled   from Cancel until Resume: the runs that are under way put
//               their records even without room, because a record that has
//               left its sources must stay for the next runner. Other puts fail
//               with CANCELLED, and so do takes when no record is left, unless
//               the buffer is closed. After CancelRuns, takes wait for Resume.
//
// A record is dropped when it becomes stale (sources/roll_back.h): its stage makes
// it again from the same elements. Apart from that and from timeouts, a record
// that was put can be taken.
//
// Each run of a producer begins with BeginRun and ends with its put, or with
// EndRun. It is admitted while the buffer is idle or open.
//
// Invariants, whenever the lock is free:
//   * Takes wait only while there is no record and no waiting put.
//   * Puts wait only while the oldest of them does not fit.
//   * Puts wait only in the states open, ending and closed, takes only in idle,
//     open and ending. While the buffer is cancelled, only takes may wait, and
//     only after CancelRuns.
//   * No record and no waiting put is stale, but for those of which a roll-back
//     is about to tell the buffer; no step gets these.
//   * Runs wait only while they may not begin.
//   * A waiter is in its list, or its callback has run or is about to run. The
//     thread that removes a waiter from its list, under the lock, runs its
//     callback, so each callback runs exactly once.
//
// Thread-safe. Callbacks run without the lock, in the thread of the call that
// ended the wait, or in the timer's thread. They may call the buffer, and may
// release the last reference to it. The caller of a method must hold a
// reference during the call. The destructor ends every wait with CANCELLED, and
// gives back what the records were made from.
class TensorBuffer : public Stage {
 public:
  using Record = std::vector<Tensor>;
  using PutDone = Stage::Done;
  using Taken = TakenRecord;
  using TakeDone = DueCallbacks::TakeDone;

  struct Options {
    // The stage's name, for errors, logs and the name of the timer's thread.
    std::string name;
    // How many records the buffer holds: at least 1, or kAutotune, with
    // which the buffer chooses (Room).
    int64_t capacity = 1;
    // How many bytes the buffer holds in host memory, and in that of each device;
    // 0 sets no bound or, if the buffer chooses its capacity, means
    // kTunedCapacityBytes. An empty buffer admits even a larger record.
    int64_t capacity_bytes = 0;
    int64_t device_capacity_bytes = 0;
    // Whether the producers go on when a take has got the error or the end of the
    // stage; otherwise, Resume lets them.
    bool goes_on = true;
    // How long a take waits for the first put or Resume.
    int64_t idle_timeout_millis = 5000;
    // Returns the device in whose memory a tensor is, such as GPU:0, or "" if it is
    // the host's. `computed_on` returns the device that computes the records. Null
    // if all records are in host memory.
    std::string (*place_of)(const Tensor& tensor,
                            absl::FunctionRef<std::string()> computed_on) =
        nullptr;
  };

  // Chosen, not measured: many records of most models.
  static constexpr int64_t kTunedCapacityBytes = int64_t{512} << 20;

  explicit TensorBuffer(Options options);
  ~TensorBuffer() override;

  // Puts `record`, after waiting for room if there is none. Waiting puts are
  // served in the order of their calls.
  //
  // `timeout_millis` bounds the wait; 0 sets no bound. `cancellation` may be
  // null. `run` is the run of a producer that puts the record, or null. `done`
  // receives
  //   OK         if the record was stored or taken, if it was dropped because
  //              the timeout passed, or if it is stale (both are counted, and the
  //              former is logged);
  //   CANCELLED  if `cancellation` or the destructor came first, or, unless
  //              `run` was admitted, if the buffer was closed or cancelled.
  void PutAsync(Record record, int64_t timeout_millis,
                CancellationManager* cancellation, PutDone done,
                StagedRun* run = nullptr) TF_LOCKS_EXCLUDED(mu_);

  // Puts the record of a run: when it is the run's turn, if that is a run of this
  // stage (StagedRun::PutInTurn). Null, or a run of another stage, puts it at once.
  // Just before, `prepare` gets the record. A template, so that `done` and what is
  // noted of the run are one closure.
  template <typename Prepare, typename Done>
  void PutForRun(std::shared_ptr<StagedRun> run, Record record,
                 int64_t timeout_millis, CancellationManager* cancellation,
                 Prepare prepare, Done done) TF_LOCKS_EXCLUDED(mu_) {
    if (run == nullptr || run->stage() != this) {
      prepare(&record);
      PutAsync(std::move(record), timeout_millis, cancellation,
               std::move(done));
      return;
    }
    StagedRun* const putting = run.get();
    PutDone noted = [run = std::move(run),
                     done = std::move(done)](const Status& status) mutable {
      if (status.ok()) run->NotePut();
      done(status);
    };
    if (!IsInTurn(putting)) {
      prepare(&record);
      PutAsync(std::move(record), timeout_millis, cancellation,
               std::move(noted), putting);
      return;
    }
    putting->PutInTurn([this, putting, record = std::move(record),
                        timeout_millis, cancellation,
                        prepare = std::move(prepare),
                        done = std::move(noted)]() mutable {
      prepare(&record);
      PutAsync(std::move(record), timeout_millis, cancellation, std::move(done),
               putting);
    });
  }

  // Whether a run's record waits for those of earlier runs.
  bool IsInTurn(const StagedRun* run) const {
    return run != nullptr && run->stage() == this && run->producer().is_ordered;
  }

  // Takes the oldest record, after waiting for one if there is none. Waiting
  // takes are served in the order of their calls.
  //
  // `cancellation` may be null. `run` is the staged run that takes the record, or
  // null if a step does, which uses what the record was made from. `done` receives
  // OK and the record, or no record and
  //   OUT_OF_RANGE         after Close(OK);
  //   Close's status       after Close with an error;
  //   CANCELLED            if `cancellation`, Cancel or the destructor came
  //                        first;
  //   FAILED_PRECONDITION  if nothing fed the buffer within
  //                        idle_timeout_millis.
  void TakeAsync(CancellationManager* cancellation, TakeDone done,
                 const StagedRun* run = nullptr) TF_LOCKS_EXCLUDED(mu_);

  // Ends waiting puts, takes and runs with CANCELLED, and likewise those that
  // come before Resume. Stores the records of admitted runs: as many as a stage
  // has producers at most. For takes, a closed buffer stays closed.
  void Cancel() override TF_LOCKS_EXCLUDED(mu_);
  // The same for puts and runs alone. Takes wait for other producers.
  void CancelRuns() TF_LOCKS_EXCLUDED(mu_);

  // Opens the buffer, and tries again what had ended the stage, unless a take has
  // to get it because it cannot come again: nothing of an iterator had been read.
  // Keeps the records.
  void Resume() TF_LOCKS_EXCLUDED(mu_);

  // Declares that no more records will come. `cause` is OK at the end of the
  // data; otherwise it is the error that ended the stage, and takes report it
  // unchanged. Admitted runs may still put their records, and puts that wait
  // are still served, so that no finished record is lost. After an error, these
  // are the runs of the producer that failed: others may wait for their input
  // for ever.
  //
  // Ignores a Close if all runs that have failed are stale: it belongs to what has
  // been rolled back since.
  void Close(const Status& cause, ProducerId producer = {}) override
      TF_LOCKS_EXCLUDED(mu_);

  // What waits, or is being made, is made again from the same elements, with the
  // state that holds now. What was made from no element is dropped. Returns how
  // many records waited.
  int64_t Discard() TF_LOCKS_EXCLUDED(mu_);
  // The same for what waits, without new state: something else reads on.
  int64_t GiveBackRecords() TF_LOCKS_EXCLUDED(mu_);

  bool BeginRun(ProducerId producer) override TF_LOCKS_EXCLUDED(mu_);
  void AwaitRun(ProducerId producer, CancellationManager* cancellation,
                Done done) override TF_LOCKS_EXCLUDED(mu_);
  void EndRun(RunEnd end) override TF_LOCKS_EXCLUDED(mu_);
  void OnRollBack() override TF_LOCKS_EXCLUDED(mu_);

  // Sets where the tensors of the records are, described by `place`. Returns
  // the `place` of the first call.
  std::string KeepRecordsOn(const std::string& place) TF_LOCKS_EXCLUDED(mu_);

  // What a buffer that chooses its capacity has found. Another may go on with
  // that, before its first record.
  Room FoundCapacity() const TF_LOCKS_EXCLUDED(mu_);
  void GoOnWith(const Room& found) TF_LOCKS_EXCLUDED(mu_);

  // Notes that a device had no memory for a record that is about to be put, and
  // stays on the host: `cause` says which. From here on the buffer holds fewer
  // records, and logs that.
  void HoldFewer(const Status& cause) TF_LOCKS_EXCLUDED(mu_);

  // How many records the buffer holds.
  int64_t Size() const TF_LOCKS_EXCLUDED(mu_);

  // Returns whether takes wait. If so, calls `done` when none waits any more.
  bool AwaitNoTake(Done done) TF_LOCKS_EXCLUDED(mu_);

  // How many records takes have received, or can receive: at one moment, since
  // a take moves a record from the second to the first.
  int64_t TakenOrHeld() const TF_LOCKS_EXCLUDED(mu_);

  BufferStats GetStats() const TF_LOCKS_EXCLUDED(mu_);

  std::string DebugString() const override TF_LOCKS_EXCLUDED(mu_);
  int64_t MemoryUsed() const override TF_LOCKS_EXCLUDED(mu_);

 private:
  enum class State { kIdle, kOpen, kEnding, kClosed };

  struct StoredRecord : TakenRecord {
    // What counts against the bounds; nothing if there are none.
    MemoryBytes bytes;
  };

  struct WaitingPut {
    StoredRecord stored;
    PutDone done;
    int64_t since_micros;
    // Whether an admitted run puts it.
    bool is_admitted;
    Watch watch = {};
  };

  struct WaitingTake {
    TakeDone done;
    int64_t since_micros;
    // Whether a step takes the record.
    bool uses;
    Watch watch = {};
  };

  // References to the records, for what takes too long with the lock.
  std::vector<Record> Records() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The device that computes the records, such as GPU:0.
  std::string Place() const TF_LOCKS_EXCLUDED(mu_);
  MemoryBytes BytesOf(const Record& record) const TF_LOCKS_EXCLUDED(mu_);
  // Counting strings takes long.
  MemoryBytes BytesOf(const std::vector<Record>& records) const
      TF_LOCKS_EXCLUDED(mu_);
  // What of a record counts against the bounds on bytes.
  MemoryBytes CountedBytes(const StoredRecord& stored) const
      TF_LOCKS_EXCLUDED(mu_);
  bool HasRoom(const MemoryBytes& bytes) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Store(StoredRecord stored) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropStale(StoredRecord stored, PutDone done, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitRoom(WaitingPut put, int64_t timeout_millis,
                 CancellationManager* cancellation, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends a put without a record.
  void EndPut(WaitingPut put, const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the record to the oldest waiting take. Returns false if it is stale.
  bool GiveToTake(StoredRecord* stored, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes the oldest record that is not stale; nothing if there is none. A step
  // uses it if `uses`.
  std::optional<StoredRecord> RemoveOldest(bool uses, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveOldest(StoredRecord stored, TakeDone done, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stores the records of waiting puts, oldest first, as long as they fit.
  void AdmitPuts(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdmitOldestPut(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Arranges for FillIfProgramPauses at the time from which on the program
  // pauses if it takes no record.
  void WatchProgram() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Lets the buffer fill if the program pauses, or watches on.
  void FillIfProgramPauses(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Changes from any state to kOpen.
  void Open(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Leaves kEnding, once no run can put another record.
  void FinishEnding(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeFirstEnd(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns whether what ended the stage is not stale; if it is, opens the buffer.
  // A step uses it if `uses`.
  bool IsEndValid(bool uses, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the end to a take, which uses it if `uses`, and lets the producers go on,
  // if there are any.
  void GiveEnd(bool uses, TakeDone done, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CancelRuns(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CancelTakes(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Take `id` waits no more.
  WaitingTake RemoveTake(uint64_t id, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether no run can put another record that belongs before the end.
  bool HasEnded() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool is_closing() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return state_ == State::kEnding || state_ == State::kClosed;
  }

  // Runs, and what is rolled back; implemented in tensor_buffer_runs.cc.
  bool MayBegin() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Admits the runs that wait, if they may begin.
  void AdmitRuns(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops the records for which `is_dropped` is true.
  void Drop(absl::FunctionRef<bool(const StoredRecord&)> is_dropped,
            DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t GiveBackRecords(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Adds `waiter` to `list`, and arranges for OnCancelled and, if timeout_millis
  // > 0, OnDeadline. If `cancellation` has already begun, returns false and
  // leaves the waiter.
  template <typename Waiter>
  bool Wait(WaitingList<Waiter>* list, CancellationManager* cancellation,
            int64_t timeout_millis, Waiter* waiter)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const uint64_t id = next_id_++;
    if (!StartWatch(id, cancellation, timeout_millis, &waiter->watch)) {
      return false;
    }
    list->Add(id, std::move(*waiter));
    return true;
  }
  bool StartWatch(uint64_t id, CancellationManager* cancellation,
                  int64_t timeout_millis, Watch* watch)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Both may be called after waiter `id` has left its list; they then do
  // nothing.
  void OnCancelled(uint64_t id) TF_LOCKS_EXCLUDED(mu_);
  void OnDeadline(uint64_t id) TF_LOCKS_EXCLUDED(mu_);

  const char* StateName() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CancelledStatus() const;
  Status NotFedStatus() const;

  const Options options_;

  mutable mutex mu_ TF_ACQUIRED_BEFORE(kBeforeRollBack);
  std::string place_of_records_ TF_GUARDED_BY(mu_);

  State state_ TF_GUARDED_BY(mu_) = State::kIdle;
  bool cancelled_ TF_GUARDED_BY(mu_) = false;
  // Whether takes are cancelled, too.
  bool takes_cancelled_ TF_GUARDED_BY(mu_) = false;
  // From kEnding on: what a take gets without a record in kClosed, what the run had
  // read that found it, its producer, and whether a take opens the buffer for
  // another try instead.
  Status end_status_ TF_GUARDED_BY(mu_);
  std::shared_ptr<ReadSet> end_reads_ TF_GUARDED_BY(mu_);
  std::optional<ProducerId> end_producer_ TF_GUARDED_BY(mu_);
  bool is_retried_ TF_GUARDED_BY(mu_) = false;
  bool is_end_taken_ TF_GUARDED_BY(mu_) = false;
  bool is_new_ TF_GUARDED_BY(mu_) = true;

  // The oldest first.
  std::deque<StoredRecord> records_ TF_GUARDED_BY(mu_);
  MemoryBytes stored_bytes_ TF_GUARDED_BY(mu_);
  Room room_ TF_GUARDED_BY(mu_);
  BufferCounters counters_ TF_GUARDED_BY(mu_);
  RunGate gate_ TF_GUARDED_BY(mu_);

  // Ids are unique over all lists, and the id of the program's watch.
  uint64_t next_id_ TF_GUARDED_BY(mu_) = 0;
  WaitingList<WaitingPut> puts_ TF_GUARDED_BY(mu_);
  WaitingList<WaitingTake> takes_ TF_GUARDED_BY(mu_);
  // What is called when no take waits.
  std::vector<Done> on_no_take_ TF_GUARDED_BY(mu_);
  // The timer reports the id when the program may pause.
  std::optional<uint64_t> program_watch_ TF_GUARDED_BY(mu_);

  // The last member, so that it is destroyed first: its thread uses everything
  // above. It is called with mu_ held, and never holds its own lock while it
  // calls back.
  DeadlineTimer timer_;

  TF_DISALLOW_COPY_AND_ASSIGN(TensorBuffer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
