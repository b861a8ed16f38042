// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tensorflow_staging/core/buffer/due_callbacks.h"
#include "tensorflow_staging/core/buffer/waiting_list.h"
#include "tensorflow_staging/core/sources/stage.h"

namespace tensorflow {
namespace staging {

// Through which the runs of a stage's producers pass to its sources: who waits,
// who is inside, and who has come out without a record. When it is open, its
// owner decides. Not thread-safe.
class RunGate {
 public:
  // A run that waits to begin.
  struct Run {
    Stage::Done done;
    uint64_t producer = 0;
    Watch watch = {};
  };

  WaitingList<Run>& waiting() { return waiting_; }
  const WaitingList<Run>& waiting() const { return waiting_; }

  // Admits the runs that wait.
  void AdmitWaiting(DueCallbacks* due);
  void EndWaiting(const Status& status, DueCallbacks* due);
  // Admits a run. That the producer goes on says what its failed run meant: the
  // program skips what that has read or, if it was the end of the data, tries it
  // again.
  void Admit(uint64_t producer, DueCallbacks* due);
  // Notes the end of an admitted run.
  void Leave(RunEnd end, DueCallbacks* due);

  // How many runs have been admitted and have not ended.
  int64_t active() const { return active_; }
  bool IsActive(uint64_t producer) const;
  // Whether a run has ever been admitted: then others may follow.
  bool has_producers() const { return !active_by_producer_.empty(); }

  // Takes what the first failed run has read that is not stale, in the order of the
  // data; nothing if there is none.
  std::optional<RunEnd> TakeFailed();
  // Whether any producer may still report how its run has failed.
  bool has_failed_runs() const { return !failed_.empty(); }
  // What failed runs have read goes back.
  void GiveBackFailed(DueCallbacks* due);
  // From here on, no producer reports a run that has failed before.
  void ForgetFailed(DueCallbacks* due);

 private:
  WaitingList<Run> waiting_;
  int64_t active_ = 0;
  std::map<uint64_t, int64_t> active_by_producer_;
  // The runs that have put no record, and whose producers have not gone on since;
  // without reads, if these have been taken or given back.
  std::vector<RunEnd> failed_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_
