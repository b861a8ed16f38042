// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "tensorflow_staging/core/buffer/due_callbacks.h"
#include "tensorflow_staging/core/buffer/waiting_list.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

// Through which the runs of a stage's producers pass to its sources: who waits,
// who holds the others, who is inside, and who has come out with nothing. When
// it is open, its owner decides. Not thread-safe.
class RunGate {
 public:
  // A run that waits to begin.
  struct Run {
    SourceReader::Done done;
    uint64_t producer = 0;
    std::atomic<int64_t>* admitted_at = nullptr;
    Watch watch = {};
  };
  // What ended the stage: what the runs had read that failed, and the producer
  // of the last.
  struct End {
    ReadSet reads;
    std::optional<uint64_t> producer;
  };

  // `keeps_elements` says whether to keep what a failed run has read when its
  // producer has begun another one: otherwise the program skips them.
  explicit RunGate(bool keeps_elements = false)
      : keeps_elements_(keeps_elements) {}

  WaitingList<Run>& waiting() { return waiting_; }
  const WaitingList<Run>& waiting() const { return waiting_; }

  // Admits the runs that wait.
  void AdmitWaiting(DueCallbacks* due);
  void EndWaiting(const Status& status, DueCallbacks* due);
  void Admit(uint64_t producer);
  // Notes the end of an admitted run. Returns what is to be destroyed without
  // the lock.
  RunEnd Leave(RunEnd end);

  // How many runs have been admitted and have not ended.
  int64_t active() const { return active_; }
  bool IsActive(uint64_t producer) const;

  // Nothing passes between Hold and Release of the same step container, which
  // may be null and have several holds.
  void Hold(const void* step_container) { holders_.push_back(step_container); }
  void Release(const void* step_container);
  bool is_held() const { return !holders_.empty(); }
  // Whether the run of this step container, which may be null, holds it.
  bool IsHeldBy(const void* step_container) const;

  // Of the runs that have failed, those whose sources have not changed since.
  // Returns nothing if all are stale or undone.
  std::optional<End> FindEnd() const;
  bool has_failed_runs() const { return !failed_.empty(); }
  // Returns what the failed runs have read and taken, and forgets it. With `undo`,
  // it is given back, and these runs end no stage. With `only_stale`, only of those
  // of which a source has changed since.
  UnusedReads TakeUnused(bool undo, bool only_stale = false);
  const std::deque<RunEnd>& failed_runs() const { return failed_; }
  void ForgetFailedRuns() { failed_.clear(); }

 private:
  const bool keeps_elements_;
  WaitingList<Run> waiting_;
  int64_t active_ = 0;
  std::map<uint64_t, int64_t> active_by_producer_;
  std::vector<const void*> holders_;
  // The latest runs that put no record. They stay after a Close: another
  // producer may report the same end later, when a source has changed.
  std::deque<RunEnd> failed_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_
