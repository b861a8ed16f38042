// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_

#include <atomic>
#include <cstdint>
#include <deque>
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
#include "tensorflow_staging/core/buffer/capacity_tuner.h"
#include "tensorflow_staging/core/buffer/deadline_timer.h"
#include "tensorflow_staging/core/buffer/due_callbacks.h"
#include "tensorflow_staging/core/buffer/room.h"
#include "tensorflow_staging/core/buffer/run_gate.h"
#include "tensorflow_staging/core/buffer/waiting_list.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/source_reader.h"
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
//                           Resume, or a source has changed
//
//   idle    Nothing has fed the buffer yet. A take waits only for
//           idle_timeout_millis, then fails with an error that names the
//           missing hook.
//   open    Puts wait for room, takes wait for records.
//   ending  Like open, for the runs that were admitted before Close.
//   closed  New puts fail with CANCELLED, except those of admitted runs; those
//           that wait still get their room. Takes drain the records, then fail
//           with the end of the data (OUT_OF_RANGE) or the cause given to
//           Close. The first Close decides which, and a later Cancel does not
//           hide it. If the cause is that something was not initialised, before
//           the first record, a take opens the buffer for another try.
//
// Independently of its state, the buffer may be
//
//   cancelled   from Cancel until Resume: the runs that are under way put
//               their records even without room, because a record that has
//               left its sources must stay for the next runner, or for a
//               checkpoint. Other puts fail with CANCELLED, and so do takes
//               when no record is left, unless the buffer is closed;
//   held        from BeginHold or Pause until EndHold: no run begins to read.
//               Puts and takes go on.
//
// A record is dropped when a source from which it was made has changed: when
// the iterator got another dataset or position. Apart from that, from Discard
// and from timeouts, a record that was put can be taken.
//
// Each run of a producer begins with BeginRun and ends with EndRun. It is
// admitted while the buffer is idle or open, and not held.
//
// Invariants, whenever the lock is free:
//   * Takes wait only while there is no record and no waiting put.
//   * Puts wait only while the oldest of them does not fit.
//   * Puts wait only in the states open, ending and closed, takes only in idle,
//     open and ending, and neither waits while the buffer is cancelled.
//   * No record and no waiting put is stale, but for a source whose change is
//     about to tell the buffer.
//   * Runs wait only while they may not begin, and pauses only while the stage
//     is not quiet.
//   * A waiter is in its list, or its callback has run or is about to run. The
//     thread that removes a waiter from its list, under the lock, runs its
//     callback, so each callback runs exactly once.
//
// Thread-safe. Callbacks run without the lock, in the thread of the call that
// ended the wait, or in the timer's thread. They may call the buffer, and may
// release the last reference to it. The caller of a method must hold a
// reference during the call. The destructor ends every wait with CANCELLED.
class TensorBuffer : public SourceReader {
 public:
  using Record = SourceReader::Record;
  using PutDone = SourceReader::Done;
  using Taken = TakenRecord;
  using TakeDone = DueCallbacks::TakeDone;

  struct Options {
    // The stage's name, for errors, logs and the name of the timer's thread.
    std::string name;
    // How many records the buffer holds: at least 1, or kAutotune, with
    // which the buffer chooses (Room).
    int64_t capacity = 1;
    // How many bytes the buffer holds; 0 sets no bound or, if the buffer
    // chooses its capacity, means kTunedCapacityBytes. An empty buffer admits
    // even a larger record.
    int64_t capacity_bytes = 0;
    // Whether records keep the elements from which they were made. Then a
    // checkpoint gets these instead of the records, and GiveBackElements can
    // undo the reads. Otherwise they are kept until the first record is put, and
    // with records that are made from several sources.
    bool keeps_elements = false;
    // How long a take waits for the first put or Resume.
    int64_t idle_timeout_millis = 5000;
    // How long a pause waits for the runs admitted before it.
    int64_t pause_timeout_millis = 60000;
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
  //              the timeout passed, or if it is stale (drops and discards are
  //              counted and logged);
  //   CANCELLED  if `cancellation` or the destructor came first, or, unless
  //              `run` was admitted, if the buffer was closed or cancelled.
  void PutAsync(Record record, int64_t timeout_millis,
                CancellationManager* cancellation, PutDone done,
                const StagedRun* run = nullptr) TF_LOCKS_EXCLUDED(mu_);

  // Takes the oldest record, after waiting for one if there is none. Waiting
  // takes are served in the order of their calls.
  //
  // `cancellation` may be null, and `step_container` is that of the session's
  // run that takes the record, or null. `done` receives OK and the record, or no
  // record and
  //   OUT_OF_RANGE         after Close(OK);
  //   Close's status       after Close with an error;
  //   CANCELLED            if `cancellation`, Cancel or the destructor came
  //                        first;
  //   FAILED_PRECONDITION  if nothing fed the buffer within
  //                        idle_timeout_millis;
  //   INVALID_ARGUMENT     if the record could only come when the session's run
  //                        that takes it has ended, because it holds the stage;
  //   ABORTED              if `run`, the staged run that takes the record, or
  //                        null, is abandoned.
  void TakeAsync(CancellationManager* cancellation, TakeDone done,
                 const void* step_container = nullptr,
                 const StagedRun* run = nullptr) TF_LOCKS_EXCLUDED(mu_);
  // Ends the waits of an abandoned run.
  void EndTakesOf(const StagedRun* run) TF_LOCKS_EXCLUDED(mu_);

  // Puts a record that was taken back where it was. If it is stale by now, the
  // sources that have not changed get back what it had of them.
  void PutBack(Taken taken) TF_LOCKS_EXCLUDED(mu_);

  // Ends waiting puts, takes and runs with CANCELLED, and likewise those that
  // come before Resume. Stores the records of admitted runs: as many as a stage
  // has producers at most. For takes, a closed buffer stays closed.
  void Cancel() override TF_LOCKS_EXCLUDED(mu_);

  // Opens the buffer, unless an error has ended the stage that no take has got
  // yet. Keeps the records.
  void Resume() TF_LOCKS_EXCLUDED(mu_);

  // Declares that no more records will come. `cause` is OK at the end of the
  // data; otherwise it is the error that ended the stage, and takes report it
  // unchanged. Admitted runs may still put their records, and puts that wait
  // are still served, so that no finished record is lost. After an error, these
  // are the runs of the producer that failed: others may wait for their input
  // for ever.
  //
  // Ignores a Close if all runs that have failed read a source that has changed
  // since: it belongs to the data before the change.
  void Close(const Status& cause) TF_LOCKS_EXCLUDED(mu_);

  // Drops all records, and those of the runs that are under way. Returns how
  // many it has dropped so far.
  int64_t Discard() TF_LOCKS_EXCLUDED(mu_);

  // Implement SourceReader. A hold that waits for runs ends with
  // DEADLINE_EXCEEDED after pause_timeout_millis.
  RunBegin BeginRun(uint64_t producer) override TF_LOCKS_EXCLUDED(mu_);
  void AwaitRun(uint64_t producer, CancellationManager* cancellation,
                std::atomic<int64_t>* admitted_at, Done done) override
      TF_LOCKS_EXCLUDED(mu_);
  void EndRun(RunEnd end) override TF_LOCKS_EXCLUDED(mu_);
  bool IsNew() const override {
    return is_new_.load(std::memory_order_acquire);
  }
  bool KeepsElements() const override {
    return options_.keeps_elements || IsNew() || ReadsSeveral();
  }
  Status FailedAhead() const override TF_LOCKS_EXCLUDED(mu_);
  bool YieldsToOthers() const override { return options_.keeps_elements; }
  void GiveBackElements() override TF_LOCKS_EXCLUDED(mu_);
  int64_t discarded_at() const override {
    return discarded_at_.load(std::memory_order_acquire);
  }
  Status Check(const std::vector<SavedRecord>& records) const override
      TF_LOCKS_EXCLUDED(mu_);
  Due BeginHold(const void* step_container) override TF_LOCKS_EXCLUDED(mu_);
  void EndHold(const void* step_container) override TF_LOCKS_EXCLUDED(mu_);
  Due OnSourceChanged(int64_t step, std::vector<SavedRecord> restored,
                      const ReadSet& reads) override TF_LOCKS_EXCLUDED(mu_);
  void Pause(const void* step_container, CancellationManager* cancellation,
             Done done) override TF_LOCKS_EXCLUDED(mu_);
  std::vector<SavedRecord> Records() const override TF_LOCKS_EXCLUDED(mu_);
  std::vector<ReadElement> ElementsOf(const Source* source) const override
      TF_LOCKS_EXCLUDED(mu_);
  RecordLayout Layout() const override TF_LOCKS_EXCLUDED(mu_);

  // Sets where the tensors of the records are, described by `place`. Returns
  // the `place` of the first call.
  std::string KeepRecordsOn(const std::string& place,
                            const RecordLayout& layout) TF_LOCKS_EXCLUDED(mu_);

  // What a buffer that chooses its capacity has found. Another may go on with
  // that, before its first record.
  CapacityTuner FoundCapacity() const TF_LOCKS_EXCLUDED(mu_);
  void GoOnWith(const CapacityTuner& found) TF_LOCKS_EXCLUDED(mu_);

  // How many records the buffer holds.
  int64_t Size() const TF_LOCKS_EXCLUDED(mu_);

  // How many records takes have received, or can receive: at one moment, since
  // a take moves a record from the second to the first.
  int64_t TakenOrHeld() const TF_LOCKS_EXCLUDED(mu_);

  BufferStats GetStats() const TF_LOCKS_EXCLUDED(mu_);

  std::string DebugString() const override TF_LOCKS_EXCLUDED(mu_);
  int64_t MemoryUsed() const override TF_LOCKS_EXCLUDED(mu_);

 private:
  enum class State { kIdle, kOpen, kEnding, kClosed };

  struct StoredRecord : TakenRecord {
    // The size that counts against capacity_bytes; 0 if that sets no bound.
    int64_t bytes = 0;
    // The names of its tensors, if it comes from a checkpoint.
    std::vector<std::string> tensor_names = {};
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
    const void* step_container;
    const StagedRun* run;
    Watch watch = {};
  };

  struct WaitingPause {
    Done done;
    // The step container of the run that holds the stage.
    const void* holder;
    Watch watch = {};
  };

  // What of a record counts against capacity_bytes.
  int64_t CountedBytes(const StoredRecord& stored) const;
  bool HasRoom(int64_t bytes) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Store(StoredRecord stored) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the record to the oldest waiting take.
  void GiveToTake(StoredRecord stored, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the oldest record to a take that need not wait.
  void GiveOldest(TakeDone done, DueCallbacks* due)
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
  void Open() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Leaves kEnding, once no run can put another record.
  void FinishEnding(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndTakes(const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What a take gets with the error or the end of the stage.
  TakenRecord Ended() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether no run can put another record that belongs before the end.
  bool HasEnded() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // FailedAhead. An error of what keeps its elements comes again with these.
  Status UntakenError() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether nothing can open the closed buffer but Resume.
  bool IsFinal() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Runs, and changes of sources; implemented in tensor_buffer_sources.cc.
  bool MayBegin() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Admits the runs that wait, if they may begin.
  void AdmitRuns(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops the records for which `is_dropped` is true, and returns them, the oldest
  // first.
  std::vector<StoredRecord> Drop(
      absl::FunctionRef<bool(const StoredRecord&)> is_dropped,
      DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Likewise those that a change of a source in the session's run number `step`
  // has made stale.
  std::vector<StoredRecord> DropStale(int64_t step, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns INVALID_ARGUMENT unless a restored record with these tensors fits
  // the stage.
  Status CheckNames(const std::vector<std::string>& tensor_names) const
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many admitted runs may still do something else than wait for room.
  int64_t BusyRuns() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartPausesIfQuiet(DueCallbacks* due) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Hold(const void* step_container, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LeaveHold(const void* step_container, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends a pause that has not begun.
  void EndPause(WaitingPause pause, const Status& status, DueCallbacks* due)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

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
  Status EndedStatus() const;
  Status AbandonedStatus() const;
  Status HeldByTakerStatus() const;
  Status PauseTimedOutStatus() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;

  mutable mutex mu_;
  std::string place_of_records_ TF_GUARDED_BY(mu_);
  RecordLayout layout_ TF_GUARDED_BY(mu_);

  State state_ TF_GUARDED_BY(mu_) = State::kIdle;
  bool cancelled_ TF_GUARDED_BY(mu_) = false;
  // From kEnding on: the result of a take without a record in kClosed, what had
  // found the end, and whether a take opens the buffer for another try.
  Status end_status_ TF_GUARDED_BY(mu_);
  RunGate::End end_ TF_GUARDED_BY(mu_);
  bool is_retried_ TF_GUARDED_BY(mu_) = false;
  bool is_end_taken_ TF_GUARDED_BY(mu_) = false;

  // By `order`.
  std::deque<StoredRecord> records_ TF_GUARDED_BY(mu_);
  int64_t last_order_ TF_GUARDED_BY(mu_) = 0;
  int64_t stored_bytes_ TF_GUARDED_BY(mu_) = 0;
  Room room_ TF_GUARDED_BY(mu_);
  BufferCounters counters_ TF_GUARDED_BY(mu_);
  RunGate gate_ TF_GUARDED_BY(mu_);

  // Ids are unique over all lists, and the id of the program's watch.
  uint64_t next_id_ TF_GUARDED_BY(mu_) = 0;
  WaitingList<WaitingPut> puts_ TF_GUARDED_BY(mu_);
  WaitingList<WaitingTake> takes_ TF_GUARDED_BY(mu_);
  WaitingList<WaitingPause> pauses_ TF_GUARDED_BY(mu_);
  // The timer reports the id when the program may pause.
  std::optional<uint64_t> program_watch_ TF_GUARDED_BY(mu_);

  std::atomic<bool> is_new_{true};
  // When Discard was called last, by Source::Now().
  std::atomic<int64_t> discarded_at_{0};

  // The last member, so that it is destroyed first: its thread uses everything
  // above. It is called with mu_ held, and never holds its own lock while it
  // calls back.
  DeadlineTimer timer_;

  TF_DISALLOW_COPY_AND_ASSIGN(TensorBuffer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_H_
