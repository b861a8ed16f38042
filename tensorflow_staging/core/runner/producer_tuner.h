// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_TUNER_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace tensorflow {
namespace staging {

// Chooses how many producers of a stage work, from one period to the next.
//
//   * While steps wait for records, it tries one producer more, and keeps it if
//     steps then take records faster. Otherwise something else is the limit,
//     such as the cores, which steps and producers share, or a lock of the
//     source, and the next attempt is made after twice as many periods as the
//     last one. While the process leaves hardly a core idle, no producer could
//     help, and it tries none. Unless the wait or the gain is large, several
//     periods decide, because the speed of steps varies by itself: as many as
//     it takes until chance is no explanation of the gain (rank_sum.h). Where
//     cores are idle during the trial and steps wait half as long as before, it
//     suffices that they do not take records more slowly: the waits tell what
//     the speed, which varies more, cannot. And while producers wait for room
//     at other times, the capacity may grow first.
//   * While steps do not wait and the producers wait for room so long that one
//     fewer would do, it takes one away. The pause of a program, as for an
//     evaluation, is no reason.
//
// The number has settled if it has not changed for many periods and none is on
// trial. Not thread-safe.
class ProducerTuner {
 public:
  // What happened in a period.
  struct Period {
    int64_t micros = 0;
    // Records that producers have put, and that steps have taken.
    int64_t put = 0;
    int64_t taken = 0;
    // How long all steps have waited for records, and all producers for room.
    int64_t take_wait_micros = 0;
    int64_t put_wait_micros = 0;
    // The CPU time that all threads of the process have taken.
    int64_t cpu_micros = 0;
  };

  // After how many periods without a change the number has settled.
  static constexpr int kPeriodsToSettle = 20;

  // Begins with one producer, and never chooses more than `most`, at least 1.
  // The process has so many `cores`. If a container limits its CPU time to
  // less, the rest counts as idle.
  ProducerTuner(int most, int cores) : most_(most), cores_(cores) {}

  int producers() const { return producers_; }

  bool settled() const { return !on_trial_ && periods_ >= kPeriodsToSettle; }

  // Chooses the number of the next period. Returns whether it differs.
  bool OnPeriod(const Period& period);

 private:
  // What a period shows of the present number of producers.
  struct Sample {
    // Records per microsecond.
    double rate;
    // The part of the time that steps waited for records.
    double wait;
    // How many cores the process left idle, on average.
    double idle_cores;
  };

  // The latest samples of the present number of producers.
  class Recent {
   public:
    void Add(const Sample& sample);

    size_t size() const { return samples_.size(); }
    // Whether there are as many as a comparison needs, and as many as it uses.
    bool complete() const;
    bool full() const;

    // The oldest comes first.
    std::vector<double> Rates() const { return Values(&Sample::rate); }
    std::vector<double> Waits() const { return Values(&Sample::wait); }
    std::vector<double> IdleCores() const {
      return Values(&Sample::idle_cores);
    }

   private:
    std::vector<double> Values(double Sample::*value) const;

    std::deque<Sample> samples_;
  };

  // Whether a period says how fast records come with the present number of
  // producers.
  bool IsEvidence(const Period& period) const;
  // Whether steps wait so long, in a period or in most recent ones, that
  // another producer may help. `waits` and `idle` are the parts of the latest
  // period that steps waited for records and all producers for room.
  bool ShouldTry(double waits, double idle) const;
  // Whether records came faster by far in the latest two periods of the trial
  // than before.
  bool IsClearlyFaster() const;
  // Whether the producer on trial is to stay; nothing if further periods have
  // to tell.
  std::optional<bool> IsWorthIt() const;
  // Whether steps wait for half as long as before the trial, or less.
  bool HasEndedWaits() const;
  // How many periods pass before the next trial.
  int PauseAfterFailure();
  bool Change(int producers);

  const int most_;
  const int cores_;
  int producers_ = 1;
  // Complete periods since the last change, and how many of the latest ones had
  // a producer to spare.
  int periods_ = 0;
  int idle_periods_ = 0;

  Recent recent_;

  // While one producer more is on trial: the periods before.
  bool on_trial_ = false;
  Recent before_;
  // After how many periods the next trial may begin, and how many the last
  // failure set.
  int periods_to_trial_ = 0;
  int pause_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_TUNER_H_
