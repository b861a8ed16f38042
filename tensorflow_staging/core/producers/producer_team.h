// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_TEAM_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_TEAM_H_

#include <atomic>
#include <chrono>  // NOLINT
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/producers/region_runs.h"

namespace tensorflow {
namespace staging {

// What the producers of one stage know of each other: the signals by which they
// work, pause and leave together, and what they have counted. Thread-safe.
class ProducerTeam {
 public:
  struct Counts {
    // Runs that have put a record, and that have failed with an ignored error.
    int64_t records = 0;
    int64_t ignored = 0;
    // How many runs have been timed, and how long they took, with their waits
    // for room: those that put a record, but for the first of each producer.
    int64_t timed_records = 0;
    int64_t record_micros = 0;
    // Whether a producer makes records: false after the end of the data, until
    // the first record of other data.
    bool running = false;
    // How many producers do, or wait for other data.
    int threads = 0;
  };

  // At first, no producer works. The stage has so many different sources.
  explicit ProducerTeam(size_t sources) : num_sources_(sources) {}
  ProducerTeam(const ProducerTeam&) = delete;
  ProducerTeam& operator=(const ProducerTeam&) = delete;

  // ---- For the runner.

  // Producers may begin again: what bounds their runs has changed.
  void Wake() TF_LOCKS_EXCLUDED(mu_);
  // Lets the producers with a lower index than `active` work. The others wait
  // for their turn. Returns false after Stop.
  bool SetActive(int active) TF_LOCKS_EXCLUDED(mu_);
  // Asks the producers to leave after their current runs. Returns whether it is
  // the first time.
  bool Stop() TF_LOCKS_EXCLUDED(mu_);
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  Counts GetCounts() const TF_LOCKS_EXCLUDED(mu_);

  // Count a producer that begins, and one that leaves. If one leaves before
  // Stop, the stage has ended, and those that wait for their turn leave, too.
  void Join() TF_LOCKS_EXCLUDED(mu_);
  void Leave() TF_LOCKS_EXCLUDED(mu_);

  // ---- For a producer.

  // Waits until the time has passed, a source has ended, or Stop. Returns
  // whether the producer continues.
  bool Pause(std::chrono::milliseconds time) TF_LOCKS_EXCLUDED(mu_);

  // A run of producer `index`, until its result has been handled. Begins after
  // waiting for the producer's turn, and until `runs` admits another. Locks nothing
  // if it need not wait and there is no bound.
  class Run {
   public:
    Run(ProducerTeam* team, int index, const RegionRuns& runs);
    ~Run() {
      if (has_begun_) team_->EndRun();
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    // Whether it has. If not, the producer must leave.
    bool has_begun() const { return has_begun_; }

    // The run has put a record. `micros` is how long it took, if that counts.
    void CountRecord(std::optional<int64_t> micros);

    // The run has found the end of its source. Returns whether all sources of
    // the stage have ended; if not, sets `*run_again` to whether this source may
    // have data again.
    bool EndSource(const std::string& source, bool* run_again);

   private:
    ProducerTeam* const team_;
    const bool has_begun_;
    // How many records and ends there were before it began.
    const int64_t records_before_;
    const int64_t ends_before_;
  };

  int64_t records() const { return records_; }
  // Returns how many errors have been ignored, with this one.
  int64_t CountIgnored() { return ++ignored_; }
  // Counts that a run has ended the stage, with an error or not.
  void CountEnd(bool is_error);
  // At the end of the data, lets the runs of other producers end, for a moment
  // at most: one of them may have found the error that is the cause. Returns
  // whether one has.
  bool LetErrorsComeFirst() TF_LOCKS_EXCLUDED(mu_);

 private:
  // Begins a run, and counts it. Returns whether it has begun.
  bool BeginRun(int index, const RegionRuns& runs) TF_LOCKS_EXCLUDED(mu_);
  // Counts a run that has begun no more. Others may begin then.
  void EndRun() TF_LOCKS_EXCLUDED(mu_);

  const size_t num_sources_;

  // Changes under mu_, as active_ does. Each producer reads both before each
  // run and should not lock mu_ for that.
  std::atomic<bool> stopped_{false};
  std::atomic<int> active_{0};

  std::atomic<int64_t> records_{0};
  std::atomic<int64_t> ignored_{0};
  std::atomic<int64_t> timed_records_{0};
  std::atomic<int64_t> record_micros_{0};
  // How many producers are in a run or handle its result. Grows under mu_ if there
  // is a bound.
  std::atomic<int> producing_{0};
  // How many producers wait, or are about to, because of the bound.
  std::atomic<int> held_up_{0};
  // How often an error has closed the buffer.
  std::atomic<int64_t> failures_{0};
  // How often a run has ended the stage. A run that had begun before may still
  // put a record afterwards.
  std::atomic<int64_t> ends_{0};
  // How many ends came before the latest run that has put a record began.
  std::atomic<int64_t> ends_before_record_{0};

  mutable mutex mu_;
  SteadyCondition changed_;
  bool one_has_left_ TF_GUARDED_BY(mu_) = false;
  int size_ TF_GUARDED_BY(mu_) = 0;
  // The sources that have reached the end of their data since the last record.
  std::set<std::string> ended_sources_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_TEAM_H_
