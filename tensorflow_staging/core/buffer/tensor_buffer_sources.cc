// SPDX-License-Identifier: Apache-2.0
//
// The part of TensorBuffer that admits the runs of its producers, follows the
// changes of its sources, and gives and gets the records of checkpoints.

#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

RunBegin TensorBuffer::BeginRun(uint64_t producer) {
  mutex_lock l(mu_);
  if (state_ == State::kClosed && !cancelled_ && IsFinal()) {
    return RunBegin::kRefused;
  }
  if (!MayBegin()) return RunBegin::kWaits;
  gate_.Admit(producer);
  return RunBegin::kAdmitted;
}

void TensorBuffer::AwaitRun(uint64_t producer,
                            CancellationManager* cancellation,
                            std::atomic<int64_t>* admitted_at, Done done) {
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  RunGate::Run run = {std::move(done), producer, admitted_at};
  if (state_ == State::kClosed && !cancelled_ && IsFinal()) {
    due.Add(std::move(run.done), EndedStatus());
  } else if (cancelled_ || !Wait(&gate_.waiting(), cancellation,
                                 /*timeout_millis=*/0, &run)) {
    due.Add(std::move(run.done), CancelledStatus());
  } else {
    AdmitRuns(&due);
  }
}

void TensorBuffer::EndRun(RunEnd end) {
  DueCallbacks due;
  RunEnd forgotten;  // Destroyed without the lock.
  {
    mutex_lock l(mu_);
    const bool is_stale = end.is_stale;
    forgotten = gate_.Leave(std::move(end));
    // Another source of the stage goes on where the steps are.
    if (is_stale) GiveBack(std::move(forgotten.unused.elements));
    if (state_ == State::kEnding && HasEnded()) FinishEnding(&due);
    StartPausesIfQuiet(&due);
  }
  // The runtime of a server ends a run with the lock of its devices.
  due.RunInAnotherThread();
}

bool TensorBuffer::MayBegin() const {
  return !gate_.is_held() && !cancelled_ &&
         (state_ == State::kIdle || state_ == State::kOpen);
}

void TensorBuffer::AdmitRuns(DueCallbacks* due) {
  if (MayBegin()) gate_.AdmitWaiting(due);
}

int64_t TensorBuffer::Discard() {
  // Before the lock, so that they are destroyed after it.
  std::vector<StoredRecord> dropped;
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  discarded_at_ = Source::Tick();
  dropped = Drop([](const StoredRecord&) { return true; }, &due);
  return dropped.size();
}

Status TensorBuffer::Check(const std::vector<SavedRecord>& records) const {
  mutex_lock l(mu_);
  for (const SavedRecord& record : records) {
    TF_RETURN_IF_ERROR(CheckNames(record.tensor_names));
  }
  return OkStatus();
}

Status TensorBuffer::CheckNames(
    const std::vector<std::string>& tensor_names) const {
  const std::vector<std::string>& names = layout_.tensor_names;
  // Without a name, nothing is known yet of a record of the stage.
  if (names.empty() || tensor_names == names) return OkStatus();
  return errors::InvalidArgument(
      "The checkpoint has records of stage '", options_.name,
      "' that do not fit the stage of this session. They hold ",
      absl::StrJoin(tensor_names, ", "), "; the stage carries ",
      absl::StrJoin(names, ", "),
      ". Restore them with the model and the settings of SmartStage that "
      "saved them, or restore only the variables.");
}

TensorBuffer::Due TensorBuffer::BeginHold(const void* step_container) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    Hold(step_container, &due);
  }
  return [due = std::move(due)]() mutable { due.Run(); };
}

void TensorBuffer::EndHold(const void* step_container) {
  DueCallbacks due;
  {
    mutex_lock l(mu_);
    LeaveHold(step_container, &due);
  }
  // The runtime of a server ends a run with the lock of its devices.
  due.RunInAnotherThread();
}

TensorBuffer::Due TensorBuffer::OnSourceChanged(
    int64_t step, std::vector<SavedRecord> restored, const ReadSet& reads) {
  DueCallbacks due;
  std::vector<StoredRecord> dropped;
  UnusedReads unused;
  {
    mutex_lock l(mu_);
    dropped = DropStale(step, &due);
    // A run that has just failed may not have ended the stage yet.
    const bool has_ended = state_ == State::kEnding || state_ == State::kClosed;
    if (has_ended) Open();
    unused = gate_.TakeUnused(/*undo=*/true, /*only_stale=*/!has_ended);
    for (StoredRecord& stored : dropped) {
      absl::c_move(stored.elements, std::back_inserter(unused.elements));
    }
    // Another source of the stage goes on where the steps are.
    GiveBack(std::move(unused.elements));
    ReadSet made_from = reads;
    made_from.MarkRestored();
    for (SavedRecord& saved : restored) {
      // They may have waited at a source that has changed again meanwhile.
      if (reads.IsStale()) break;
      StoredRecord stored{{std::move(saved.tensors), made_from}};
      stored.is_restored = true;
      stored.step = step;
      stored.tensor_names = std::move(saved.tensor_names);
      stored.bytes = CountedBytes(stored);
      if (takes_.empty()) {
        Store(std::move(stored));
      } else {
        GiveToTake(std::move(stored), &due);
      }
    }
    AdmitPuts(&due);
    AdmitRuns(&due);
  }
  if (!dropped.empty()) {
    VLOG(1) << "Stage '" << options_.name << "' discarded " << dropped.size()
            << " records, because an iterator that it reads was initialised "
            << "or restored.";
  }
  return [due = std::move(due), dropped = std::move(dropped),
          taken = std::move(unused.taken)]() mutable {
    for (StoredRecord& stored : dropped) PutBackAll(stored.taken);
    PutBackAll(taken);
    due.Run();
  };
}

std::vector<TensorBuffer::StoredRecord> TensorBuffer::DropStale(
    int64_t step, DueCallbacks* due) {
  // The other sources of what is dropped, which get back what it had of them: what
  // came after it and had more of them goes with it.
  std::set<const Source*> others;
  std::vector<StoredRecord> dropped = Drop(
      [step, &others](const StoredRecord& stored) {
        // A restored record says nothing of what it was made from. It goes with
        // any source of the stage that a later run changes.
        bool is_dropped = stored.reads.IsStale() ||
                          (stored.is_restored && stored.step < step);
        if (stored.elements.empty() && stored.taken == nullptr)
          return is_dropped;
        is_dropped |= stored.reads.HasAnyOf(others);
        if (is_dropped) stored.reads.AddUnchanged(&others);
        return is_dropped;
      },
      due);
  StagedRun::AbandonReaders(this, others);
  return dropped;
}

void TensorBuffer::Pause(const void* step_container,
                         CancellationManager* cancellation, Done done) {
  {
    ScopedDueCallbacks due;
    mutex_lock l(mu_);
    Hold(step_container, &due);
    WaitingPause pause = {std::move(done), step_container};
    if (BusyRuns() <= 0) {
      due.Add(std::move(pause.done), OkStatus());
      return;
    }
    if (!Wait(&pauses_, cancellation, options_.pause_timeout_millis, &pause)) {
      EndPause(std::move(pause), CancelledStatus(), &due);
      return;
    }
  }
  StagedRun::EndWaitsOf(this);
}

std::vector<SavedRecord> TensorBuffer::Records() const {
  std::vector<SavedRecord> records;
  if (options_.keeps_elements) return records;
  mutex_lock l(mu_);
  records.reserve(records_.size() + puts_.size());
  for (const StoredRecord& stored : records_) {
    records.push_back(
        {stored.is_restored ? stored.tensor_names : layout_.tensor_names,
         stored.record, /*is_on_host=*/stored.is_restored});
  }
  for (const auto& [id, put] : puts_) {
    records.push_back({layout_.tensor_names, put.stored.record,
                       /*is_on_host=*/false});
  }
  return records;
}

std::vector<ReadElement> TensorBuffer::ElementsOf(const Source* source) const {
  std::vector<ReadElement> elements;
  if (!options_.keeps_elements) return elements;
  const auto add = [source, &elements](const std::vector<ReadElement>& from) {
    for (const ReadElement& element : from) {
      if (element.from.first.get() == source &&
          element.from.second == source->version()) {
        elements.push_back(element);
      }
    }
  };
  mutex_lock l(mu_);
  for (const StoredRecord& stored : records_) add(stored.elements);
  for (const auto& [id, put] : puts_) add(put.stored.elements);
  for (const RunEnd& run : gate_.failed_runs()) add(run.unused.elements);
  return elements;
}

void TensorBuffer::GiveBackElements() {
  // Before the lock, so that they are destroyed after it.
  std::vector<StoredRecord> dropped;
  ScopedDueCallbacks due;
  mutex_lock l(mu_);
  UnusedReads unused = gate_.TakeUnused(/*undo=*/true);
  // The error comes again, if its element does.
  if ((!unused.elements.empty() || unused.taken != nullptr) &&
      (state_ == State::kEnding || state_ == State::kClosed)) {
    Open();
  }
  dropped = Drop([](const StoredRecord&) { return true; }, &due);
  for (StoredRecord& stored : dropped) {
    absl::c_move(stored.elements, std::back_inserter(unused.elements));
  }
  GiveBack(std::move(unused.elements));
  due.PutBack(std::move(unused.taken));
  AdmitRuns(&due);
}

RecordLayout TensorBuffer::Layout() const {
  mutex_lock l(mu_);
  return layout_;
}

std::vector<TensorBuffer::StoredRecord> TensorBuffer::Drop(
    absl::FunctionRef<bool(const StoredRecord&)> is_dropped,
    DueCallbacks* due) {
  std::vector<StoredRecord> dropped;
  std::deque<StoredRecord> kept;
  for (StoredRecord& stored : records_) {
    if (is_dropped(stored)) {
      stored_bytes_ -= stored.bytes;
      dropped.push_back(std::move(stored));
    } else {
      kept.push_back(std::move(stored));
    }
  }
  records_ = std::move(kept);
  puts_.RemoveIf([&](const WaitingPut& put) { return is_dropped(put.stored); },
                 [&](WaitingPut put) {
                   ++counters_.put;
                   dropped.push_back(std::move(put.stored));
                   due->Add(std::move(put.done), OkStatus());
                 });
  counters_.discarded += dropped.size();
  if (records_.empty()) room_.OnDropped();
  return dropped;
}

int64_t TensorBuffer::BusyRuns() const {
  int64_t busy = gate_.active();
  for (const auto& [id, put] : puts_) {
    // The put is the last thing that a run does with what it has read.
    if (put.is_admitted) --busy;
  }
  return busy;
}

void TensorBuffer::StartPausesIfQuiet(DueCallbacks* due) {
  if (pauses_.empty() || BusyRuns() > 0) return;
  while (!pauses_.empty()) due->Add(pauses_.RemoveOldest().done, OkStatus());
}

void TensorBuffer::Hold(const void* step_container, DueCallbacks* due) {
  gate_.Hold(step_container);
  takes_.RemoveIf([this](const WaitingTake& take) TF_EXCLUSIVE_LOCKS_REQUIRED(
                      mu_) { return gate_.IsHeldBy(take.step_container); },
                  [this, due](WaitingTake take) {
                    due->AddTake(std::move(take.done), HeldByTakerStatus());
                  });
}

void TensorBuffer::LeaveHold(const void* step_container, DueCallbacks* due) {
  gate_.Release(step_container);
  AdmitRuns(due);
}

void TensorBuffer::EndPause(WaitingPause pause, const Status& status,
                            DueCallbacks* due) {
  due->Add(std::move(pause.done), status);
  LeaveHold(pause.holder, due);
}

Status TensorBuffer::EndedStatus() const {
  return errors::Cancelled("Stage '", options_.name, "' ", kHasEnded);
}

Status TensorBuffer::AbandonedStatus() const {
  return errors::Aborted("A run that waits for a record of stage '",
                         options_.name, "' is repeated.");
}

Status TensorBuffer::HeldByTakerStatus() const {
  return errors::InvalidArgument(
      "The run initialises, restores or saves an iterator of stage '",
      options_.name,
      "' and also takes a record of the stage. The stage goes on only when the "
      "run has ended, so the run would wait for itself. Initialise or save the "
      "iterator in a run of its own.");
}

Status TensorBuffer::PauseTimedOutStatus() const {
  return errors::DeadlineExceeded(
      "Stage '", options_.name, "' could not be saved: ", BusyRuns(),
      " of its runs had not ended after ", options_.pause_timeout_millis,
      " ms. The position of an iterator can be saved only while no run reads "
      "it. The runs of the stage seem to be waiting for slow input.");
}

}  // namespace staging
}  // namespace tensorflow
