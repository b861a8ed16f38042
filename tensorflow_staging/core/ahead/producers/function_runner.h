// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_PRODUCERS_FUNCTION_RUNNER_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_PRODUCERS_FUNCTION_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/ahead/producers/function_runs.h"
#include "tensorflow_staging/core/producers/producers.h"

namespace tensorflow {
namespace staging {

// Runs a region outside of sessions ahead of the step that takes its records: its
// producers (producers/producer.h) call the function that puts them, until the data
// ends, it fails, or Stop.
//
// The stage waits after an error or the end of its data until Continue, or a change
// of its iterator. So the step sees an error after as many records as without the
// stage, and goes on with the next element.
//
// Thread-safe. Holds no lock while the region runs.
class FunctionRunner {
 public:
  // Opens the buffer and starts `num_threads` producers; if `tuning` tunes threads,
  // that says how many there are. The stage goes on with what others have found.
  FunctionRunner(core::RefCountPtr<StepBuffer> buffer, int num_threads,
                 FunctionRuns::RunRegion run_region,
                 std::shared_ptr<StageTuning> tuning =
                     std::make_shared<StageTuning>(/*tunes_threads=*/false));
  ~FunctionRunner() { Stop(); }
  FunctionRunner(const FunctionRunner&) = delete;
  FunctionRunner& operator=(const FunctionRunner&) = delete;

  // After the step has seen an error: goes on with the next element, unless the
  // stage is stopped.
  void Continue();

  // From here on makes the records of `steps` more steps, or any number:
  // StepBuffer::kNoLimit. A step beyond them gets its record all the same.
  void SetLimit(int64_t steps);

  // Waits until the producers have left, and cancels their runs if that takes
  // longer than reads do; 1.6 seconds at most, for code that cannot be cancelled.
  // Such a thread leaves after its run, for which no later call waits. What they
  // have read and no step has used is given back to its sources.
  void Stop() { Stop(/*cancels_takes=*/true); }
  // The same, but takes wait for a runner that begins after this one. Lets reads for
  // takes that wait end by themselves, however long that takes: without a stage,
  // the next step would wait for them as well.
  void StopForNext() {
    has_next_ = true;
    Stop(/*cancels_takes=*/false);
  }

  ProducerTeam::Counts GetCounts() const { return producers_->GetCounts(); }

 private:
  void Stop(bool cancels_takes) TF_LOCKS_EXCLUDED(mu_);
  // Whether takes wait. If so, the producers hear of it when none does any more.
  bool HasWaitingTakes();

  // Shared with the producers, so that one that Stop leaves behind keeps alive what
  // it uses.
  const std::shared_ptr<FunctionRuns> runs_;
  const std::shared_ptr<Producers> producers_;

  // Whether StopForNext has been called.
  std::atomic<bool> has_next_{false};

  mutex mu_;
  // Whether Stop has left a thread behind.
  bool left_behind_ TF_GUARDED_BY(mu_) = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_PRODUCERS_FUNCTION_RUNNER_H_
