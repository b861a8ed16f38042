// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCERS_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCERS_H_

#include <chrono>  // NOLINT
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/producers/producer_team.h"
#include "tensorflow_staging/core/producers/region_runs.h"
#include "tensorflow_staging/core/producers/stage_tuning.h"
#include "tensorflow_staging/core/sources/run_order.h"

namespace tensorflow {
namespace staging {

struct ProducersOptions {
  // The name of the stage.
  std::string stage;
  // What each of the producers with which the stage begins reads. Those that read
  // the same make the records of one, in the same order.
  std::vector<std::string> sources;
  // Whether they make them in any order, which gains something if records take very
  // different times.
  bool any_order = false;
  // Chooses how many producers work, if it tunes threads: then there is one source.
  std::shared_ptr<StageTuning> tuning = std::make_shared<StageTuning>(false);
  // Called by the last producer that leaves, unless it is null.
  std::function<void()> on_last_left;
};

// How long a stage that stops waits for a thread in code that cannot be cancelled.
// tf.train.Coordinator.join checks its threads after 2 and then after 4 seconds, and
// should return within 5; a stage stops before the first check.
inline constexpr std::chrono::milliseconds kStopPatience(1500);

// The producers of a stage, each in a thread of its own. Thread-safe. The threads
// share ownership of this object: call Join before it can end.
class Producers : public std::enable_shared_from_this<Producers> {
 public:
  // `runs` must live until the threads have left.
  Producers(ProducersOptions options, RegionRuns* runs);
  Producers(const Producers&) = delete;
  Producers& operator=(const Producers&) = delete;

  // Starts the threads, which prepare their runs. Returns false after Stop.
  bool Start() TF_LOCKS_EXCLUDED(mu_);
  // Lets them run the region. Returns false after Stop.
  bool Begin() TF_LOCKS_EXCLUDED(mu_);
  // What bounds their runs has changed.
  void Wake() { team_.Wake(); }

  // Asks the producers to leave after their current runs. Returns whether it is
  // the first time. Does not wake what waits in the stage.
  bool Stop() TF_LOCKS_EXCLUDED(mu_);
  bool stopped() const { return team_.stopped(); }
  // Waits until all have left. Returns false if that takes longer than `patience`,
  // which begins anew while `is_awaited`, unless it is null, returns true. That is
  // asked again after each CheckAwaited, and must not call this object.
  bool AwaitLeft(std::chrono::milliseconds patience,
                 const std::function<bool()>& is_awaited = nullptr)
      TF_LOCKS_EXCLUDED(mu_);
  void CheckAwaited() TF_LOCKS_EXCLUDED(mu_);
  // Waits until all threads have ended. Call this after Stop, in none of them.
  void Join() TF_LOCKS_EXCLUDED(mu_);

  ProducerTeam::Counts GetCounts() const { return team_.GetCounts(); }
  // Whether several of them keep the order of one; false until they have begun.
  bool keep_order() const;
  const StageTuning& tuning() const { return *options_.tuning; }

 private:
  // Starts threads until there are `count`. Returns false after Stop.
  bool StartThreads(int count) TF_LOCKS_EXCLUDED(mu_);
  // The body of thread `index`.
  void Work(int index) TF_LOCKS_EXCLUDED(mu_);
  // Only producers of this process can keep an order.
  bool CanKeepOrder() const { return runs_->FindStage() != nullptr; }
  // In thread 0, after a record.
  void OnRecord() TF_LOCKS_EXCLUDED(mu_);

  const ProducersOptions options_;
  RegionRuns* const runs_;
  // Of this stage in the tuning.
  const int64_t number_;
  // By what is read, for the sources of several producers.
  std::map<std::string, std::shared_ptr<RunOrder>> orders_;
  ProducerTeam team_;

  mutable mutex mu_;
  SteadyCondition left_;
  // How many threads have not left.
  int working_ TF_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<Thread>> threads_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCERS_H_
