// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SIMULATED_STAGE_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SIMULATED_STAGE_H_

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "tensorflow_staging/core/buffer/capacity_tuner.h"
#include "tensorflow_staging/core/buffer/step_times.h"

namespace tensorflow {
namespace staging {

// A stage, the step that takes its records, and the cores that both share, in
// simulated time: so a machine of many cores can be tested on any, in no time.
//
// A producer makes a record in two parts: in the source, which serves one
// producer after the other, and in the rest of the region. Then it puts the
// record, which waits for room. What computes gets its share of the cores.
class SimulatedStage {
 public:
  struct Load {
    // In milliseconds.
    double source = 0;
    double region = 0;
    double step = 0;
    // Whether source, region and step compute; otherwise they wait.
    bool computes = false;
    int cores = 16;
    // By how much each time varies, up and down: a part of it.
    double jitter = 0;
    // Of the buffer; 0 lets it choose.
    int capacity = 0;
  };

  // What has happened so far. Times are in microseconds.
  struct Totals {
    int64_t put = 0;
    int64_t taken = 0;
    // Of the puts and takes that have succeeded.
    double put_wait = 0;
    double take_wait = 0;
    double cpu = 0;
  };

  explicit SimulatedStage(const Load& load) : load_(load), producers_(1) {}

  // Lets steps begin. Before, the producers fill the buffer.
  void BeginSteps();

  // Changes what records and steps take from the next ones on.
  void SetLoad(const Load& load) { load_ = load; }

  // How many producers go on after the records that they are at.
  void SetProducers(int count);

  // Runs until producer 0 has put a record, or until `end`, in microseconds.
  // Returns whether it has put one.
  bool Run(double end);

  // In microseconds.
  double now() const { return now_; }
  const Totals& totals() const { return totals_; }

 private:
  enum class State {
    kIdle,
    kAwaitsSource,
    kInSource,
    kInRegion,
    kAwaitsRoom,
    kAwaitsRecord,
    kInStep
  };

  // A producer, or the program that takes steps.
  struct Actor {
    State state = State::kIdle;
    // Of the present work; or since when it waits.
    double left = 0;
    double since = 0;
  };

  int64_t Capacity() const;
  // Returns a time in microseconds, given its mean in milliseconds.
  double Varied(double millis);
  bool Works(const Actor& actor) const;
  void BeginRecord(int producer);
  void EnterSource();
  void Finish(Actor* actor);
  void Put(int producer);
  void Take();
  // Lets the step and the waiting puts go on as far as the buffer allows.
  void Settle();

  Load load_;
  double now_ = 0;
  Totals totals_;
  std::vector<Actor> producers_;
  int active_ = 1;
  Actor program_;
  CapacityTuner capacity_;
  StepTimes steps_;
  int64_t records_ = 0;
  bool source_is_free_ = true;
  std::deque<int> await_source_;
  std::deque<int> await_room_;
  bool first_has_put_ = false;
  std::minstd_rand random_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SIMULATED_STAGE_H_
