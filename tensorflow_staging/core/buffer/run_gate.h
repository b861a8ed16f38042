// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "tensorflow/core/platform/status.h"
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
    ProducerId producer;
    Watch watch = {};
  };

  WaitingList<Run>& waiting() { return waiting_; }
  const WaitingList<Run>& waiting() const { return waiting_; }

  // Admits the runs that wait.
  void AdmitWaiting(DueCallbacks* due);
  void EndWaiting(const Status& status, DueCallbacks* due);
  // Admits a run. If the last one of its producer has met the end of its data, it
  // tries again.
  void Admit(ProducerId producer, DueCallbacks* due);
  // Notes the end of an admitted run.
  void Leave(RunEnd end, DueCallbacks* due);

  // How many runs have been admitted and have not ended.
  int64_t active() const { return active_; }
  // Whether a run of its source has not ended that may have begun before the last
  // one of the producer.
  bool IsEarlierActive(ProducerId producer) const;
  // Whether a run has ever been admitted: then others may follow.
  bool has_producers() const { return !sources_.empty(); }

  // A run of `producer` has put a record, or has ended the stage, with what `reads`
  // has read. The failed runs of the producer before it have been ignored: the step
  // that gets what this one has made uses what they have read, too. Of producers that
  // keep an order, these are all of the source that have not read after it, and of a
  // producer that is not told apart from others, all that have read before it.
  void PassFailed(ProducerId producer, const std::shared_ptr<ReadSet>& reads,
                  DueCallbacks* due);

  // A producer's report that its run has failed.
  struct Report {
    // What the run had read; null if it was no run, or a record has it by now.
    std::shared_ptr<ReadSet> reads;
    std::optional<ProducerId> producer;
  };
  // Returns what ends the stage when `producer` reports `cause`, which is OK at the
  // end of the data. Nothing if what it reports has been rolled back since, or if the
  // last run of another source has not found an end that still holds. If the producer
  // is not told apart from others, this is what the run has read that has failed with
  // the cause, or that has read first.
  std::optional<Report> TakeReport(const Status& cause, ProducerId producer);
  // Takes another run that has met the end of the data; null if there is none.
  std::shared_ptr<ReadSet> TakeEnd();
  // The stage ends, and no run of a producer is left: whoever gets what `end` has read
  // uses what ignored runs of any producer have read, too.
  void PassIgnored(const std::shared_ptr<ReadSet>& end, DueCallbacks* due);
  // What failed runs have read goes back; with `keeps_ends`, but for those that have
  // met the end of the data.
  void GiveBackFailed(DueCallbacks* due, bool keeps_ends = false);
  // Other producers begin: none reports a run that has failed before.
  void ForgetFailed(DueCallbacks* due);

 private:
  struct Failed {
    ProducerId producer;
    Status status;
    bool is_end_of_data;
    // Null if these have been taken, given back or passed.
    std::shared_ptr<ReadSet> reads;
    // Whether its producer has begun another run, and so has ignored it.
    bool is_ignored = false;
    bool is_passed = false;

    bool is_open() const { return reads != nullptr && !reads->is_stale(); }
  };
  // The runs of one source.
  struct SourceRuns {
    // How many have been admitted and have not ended.
    int64_t active = 0;
    // Whether one has been admitted since ForgetFailed.
    bool has_begun = false;
  };
  // Returns the open one that has read first of those for which `predicate` is true;
  // null if there is none.
  template <typename Predicate>
  Failed* FirstOpen(Predicate predicate);
  bool HasOtherSourceMore(ProducerId producer) const;
  std::optional<Report> TakeReportOf(ProducerId producer);
  std::optional<Report> TakeReportOfAny(const Status& cause);

  WaitingList<Run> waiting_;
  int64_t active_ = 0;
  std::map<uint64_t, SourceRuns> sources_;
  // Runs that have put no record, until their producers have reported them or gone
  // on. Producers of a server are not told apart, so theirs stay.
  std::deque<Failed> failed_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_RUN_GATE_H_
