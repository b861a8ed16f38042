// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_RUN_ORDER_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_RUN_ORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/sources/read_set.h"

namespace tensorflow {
namespace staging {

// The order of the runs of several producers of a source. One run at a time
// reads its elements and draws its random numbers, and each puts its record, or
// fails, after all that began before it. In between they compute at the same
// time. So the records of several producers are those of one, in the same order;
// tf.data's parallel map is deterministic in the same way.
//
//   Begin ---> EndReads ---> Put or AwaitTurn ---> End
//
// A run is known by its producer, which has one at a time. Thread-safe. What it
// calls, it calls without a lock.
class RunOrder {
 public:
  using PutRecord = absl::AnyInvocable<void() &&>;

  RunOrder() = default;
  RunOrder(const RunOrder&) = delete;
  RunOrder& operator=(const RunOrder&) = delete;

  // Begins a run, after waiting until no run is reading, and none is about to give
  // back what it has read.
  void Begin(uint64_t producer) TF_LOCKS_EXCLUDED(mu_);
  // The run holds what it reads in `reads`. If it has been abandoned since it began,
  // gives that back.
  void SetReads(uint64_t producer, std::shared_ptr<ReadSet> reads)
      TF_LOCKS_EXCLUDED(mu_);
  // The run reads and draws no more, so the next one may begin.
  void EndReads(uint64_t producer) TF_LOCKS_EXCLUDED(mu_);

  // Calls `put` when all runs before have put their records or have ended. If the
  // run is stale by then, abandons the later ones.
  void Put(uint64_t producer, PutRecord put) TF_LOCKS_EXCLUDED(mu_);
  // Waits for the same if the run has not put its record.
  void AwaitTurn(uint64_t producer) TF_LOCKS_EXCLUDED(mu_);

  // The run has failed or is stale: those that began after it come too early, and
  // give back what they have read. None begins until all of them have ended.
  void AbandonLater(uint64_t producer) TF_LOCKS_EXCLUDED(mu_);
  void End(uint64_t producer) TF_LOCKS_EXCLUDED(mu_);

  // The producers stop: from here on no run waits for another. A run that makes its
  // record before an earlier one does gives back what it has read.
  void Release() TF_LOCKS_EXCLUDED(mu_);

 private:
  struct Run {
    uint64_t producer = 0;
    std::shared_ptr<ReadSet> reads;
    // With all later runs.
    bool is_abandoned = false;
    bool is_reading = true;
    // Waits for its turn; null before and after that.
    PutRecord put;
    bool has_put = false;
  };
  // By the number of the run. There are no more than producers.
  using Runs = std::map<int64_t, Run>;
  using Abandoned = std::vector<std::shared_ptr<ReadSet>>;

  bool MayBegin() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Runs::iterator Find(uint64_t producer) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsNext(Runs::const_iterator run) const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Marks all runs from this one on. Adds to `*abandoned` what is to be given back
  // without the lock.
  void Mark(Runs::iterator from, Abandoned* abandoned)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls the puts whose turn it is.
  void CallPuts() TF_LOCKS_EXCLUDED(mu_);

  mutable mutex mu_;
  SteadyCondition changed_;
  int64_t last_ TF_GUARDED_BY(mu_) = 0;
  Runs runs_ TF_GUARDED_BY(mu_);
  bool is_released_ TF_GUARDED_BY(mu_) = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_RUN_ORDER_H_
