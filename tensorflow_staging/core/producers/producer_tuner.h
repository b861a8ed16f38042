// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_TUNER_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace tensorflow {
namespace staging {

// Chooses how many producers of a stage work, from one period to the next.
//
// Goal: steps take records as fast as they can, with no more producers than that
// takes. Failure mode: where something else is the limit, producers gain
// nothing, and it must not keep them. So each addition is a trial.
//
//             steps wait                   no clear gain
//   watching ------------> several on trial ----------> one on trial
//     |  ^ ^                   | passed                   |     |
//     |  | +-------------------+--------------------------+     | failed
//     |  +---------------------------- resting <----------------+
//     +--> fewer, if producers wait (resting, too)
//
//   watching          While steps wait for records, it tries as many producers
//                     as Little's law demands: records come as fast as the steps
//                     take them, or as fast as the cores can compute both, if
//                     the producers are that rate times the time of the region
//                     (J. D. C. Little, "A proof for the queuing formula
//                     L = λW", 1961). While steps and producers wait for each
//                     other by turns, the capacity may grow first. While the
//                     process leaves hardly a core idle, no producer could help,
//                     and it tries none. While steps do not wait and the
//                     producers wait for room so long that fewer would do, it
//                     takes those away. The pause of a program, as for an
//                     evaluation, is no reason.
//   several on trial  They pass if steps then take records faster by far. If the
//                     region takes much longer than before, though cores are
//                     idle, producers queue for the source; those that the rate
//                     does not need go.
//   one on trial      The speed of steps varies by itself, so several periods
//                     decide: as many as it takes until chance is no explanation
//                     of the gain (rank_sum.h). Where cores are idle and steps
//                     wait half as long as before, it suffices that they do not
//                     take records more slowly: the waits tell what the speed,
//                     which varies more, cannot.
//   resting           Like watching, but begins no trial, for twice as many
//                     periods as after the failure before.
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

  bool settled() const { return !OnTrial() && periods_ >= kPeriodsToSettle; }

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
    // What the region and a step took, apart from their waits for room and for
    // a record, and the CPU time of all threads per record. In microseconds.
    double region;
    double step;
    double cpu;
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
    std::vector<double> Values(double Sample::* value) const;
    double Median(double Sample::* value) const;

   private:
    std::deque<Sample> samples_;
  };

  enum class State { kWatching, kSeveralOnTrial, kOneOnTrial, kResting };
  // Of a trial. If it is open, further periods have to tell.
  enum class Verdict { kPassed, kFailed, kOpen };

  bool OnTrial() const {
    return state_ == State::kSeveralOnTrial || state_ == State::kOneOnTrial;
  }

  Sample SampleOf(const Period& period) const;

  // Whether a period says how fast records come with the present number of
  // producers.
  bool IsEvidence(const Period& period) const;
  // Whether steps wait long in a period, after recent ones in which they did
  // not. Steps or the region take another time since, so those tell nothing. A
  // trial compares all of its periods, so that it ends.
  bool IsOtherLoad(const Sample& sample) const;
  // Whether steps wait so long, in the latest periods or in most recent ones,
  // that more producers may help. `waits` is the part of the latest period that
  // steps waited for records.
  bool ShouldTry(double waits) const;
  // How many producers that never wait would let steps not wait, or no core
  // idle, on average, if a step takes this part of the time that it took.
  double Demand(double part_of_step) const;
  // How many producers it takes for that, where times vary.
  int ProducersFor(double demand) const;
  // Whether records came faster by far in the latest two periods of the trial
  // than before.
  bool IsClearlyFaster() const;
  // Judges a trial of one by all periods.
  Verdict Judge() const;
  // Whether steps wait for half as long as before the trial, or less.
  bool HasEndedWaits() const;
  // How many of the producers on trial are of use.
  int UsefulProducers() const;
  // These return whether the number changes. The second one ends the trial if it
  // has been long enough.
  bool BeginTrial();
  bool EndTrial();
  // How many periods it rests after the trial has failed.
  int RestAfterFailure();
  // Counts a period. `idle` is the part of it that all producers waited for
  // room: 2 if two did all the time.
  void CountSpare(double idle);
  bool Change(int producers);

  const int most_;
  const int cores_;
  State state_ = State::kWatching;
  int producers_ = 1;
  // Complete periods since the last change, in how many of the latest ones
  // producers were to spare, and how many were in each of those.
  int periods_ = 0;
  int idle_periods_ = 0;
  int spare_ = 0;

  Recent recent_;

  // What was before the trial.
  int producers_before_ = 0;
  Recent before_;
  // Whether the latest trial of several producers has shown another limit than
  // Little's law knows, and no trial a clear gain since.
  bool is_limited_ = false;
  // How many periods it still rests, and how many the last failure set.
  int rest_ = 0;
  int last_rest_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_TUNER_H_
