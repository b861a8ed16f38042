// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_STEP_PRODUCERS_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_STEP_PRODUCERS_H_

#include <chrono>  // NOLINT
#include <cstdint>
#include <functional>
#include <memory>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/ahead/step_buffer.h"
#include "tensorflow_staging/core/ahead/step_tuning.h"
#include "tensorflow_staging/core/framework/steady_condition.h"

namespace tensorflow {
namespace staging {

// The threads that run a region outside of sessions, again and again, until its
// data ends, it fails, or Stop.
//
//   result of a run       what its thread does
//   OK                    runs it again
//   OUT_OF_RANGE          the data has ended: closes the buffer
//   any other error       closes the buffer with it
//   failed only because an iterator has got another position: runs it again
//
// Several threads make the records of one, in the same order (RunOrder): what a
// run has read that began after one that fails comes again after the error.
//
// A run of a closed buffer waits until Continue, or a change of its iterator,
// opens the buffer. So the step that takes records sees an error after as many
// records as without the threads, and goes on with the next element.
//
// Thread-safe. Holds no lock while the region runs. The threads share ownership
// of this object, so that one that Stop leaves behind keeps what it uses alive.
class StepProducers : public std::enable_shared_from_this<StepProducers> {
 public:
  // Runs the region once.
  using RunRegion = std::function<Status(CancellationManager*)>;

  // Opens the buffer and starts the threads. If `tuning` is not null, the stage
  // goes on with what others have found, and if it tunes threads, it says how
  // many there are from then on.
  static std::shared_ptr<StepProducers> Start(
      core::RefCountPtr<StepBuffer> buffer, int num_threads,
      RunRegion run_region, std::shared_ptr<StepTuning> tuning = nullptr);

  StepProducers(const StepProducers&) = delete;
  StepProducers& operator=(const StepProducers&) = delete;

  // After the step has seen an error: goes on with the next element.
  void Continue() TF_LOCKS_EXCLUDED(mu_);

  // From here on makes the records of `steps` more steps, or any number:
  // StepBuffer::kNoLimit. A step beyond them gets its record all the same.
  void SetLimit(int64_t steps) TF_LOCKS_EXCLUDED(mu_);

  // Waits until the threads have left, and cancels their runs if that takes
  // longer than reads do; 1.6 seconds at most, for code that cannot be cancelled.
  // Such a thread leaves after its run, for which no later call waits. What they
  // have read and no step has used is given back to its sources.
  void Stop() TF_LOCKS_EXCLUDED(mu_);

  // How many threads run the region.
  int num_threads() const TF_LOCKS_EXCLUDED(mu_);

  // How many runs have put a record, and how long they took in all, the waits
  // for room included.
  struct Times {
    int64_t records = 0;
    int64_t micros = 0;
  };
  Times times() const TF_LOCKS_EXCLUDED(mu_);

  const TensorBuffer& buffer() const { return *buffer_; }

 private:
  StepProducers(core::RefCountPtr<StepBuffer> buffer, RunRegion run_region,
                std::shared_ptr<StepTuning> tuning)
      : buffer_(std::move(buffer)),
        run_region_(std::move(run_region)),
        tuning_(std::move(tuning)),
        number_(tuning_ != nullptr ? tuning_->Begin(buffer_.get()) : 0) {}

  // Returns whether all threads have left in time.
  bool AwaitThreads(std::chrono::milliseconds patience)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TunesThreads() const {
    return tuning_ != nullptr && tuning_->tunes_threads();
  }
  // Lets so many threads run the region, and starts those that are missing.
  void UseThreads(int number) TF_LOCKS_EXCLUDED(mu_);
  void Work(int index) TF_LOCKS_EXCLUDED(mu_);
  // Returns whether the thread continues.
  bool Produce(int index) TF_LOCKS_EXCLUDED(mu_);
  // Returns false if the stage was cancelled before it admitted the run.
  bool RunOnce(uint64_t producer) TF_LOCKS_EXCLUDED(mu_);
  // Whether another run may begin.
  bool MayBegin() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs the region as `run`, which has been admitted.
  Status Run(const std::shared_ptr<StagedRun>& run) TF_LOCKS_EXCLUDED(mu_);
  const core::RefCountPtr<StepBuffer> buffer_;
  const RunRegion run_region_;
  const std::shared_ptr<StepTuning> tuning_;
  // The number of this stage there.
  const int64_t number_;

  mutable mutex mu_;
  SteadyCondition changed_;
  bool stopping_ TF_GUARDED_BY(mu_) = false;
  // Whether Stop has left a thread behind.
  bool left_behind_ TF_GUARDED_BY(mu_) = false;
  // Threads that were started, that have not left, and that run the region:
  // those with the lowest indices.
  int started_ TF_GUARDED_BY(mu_) = 0;
  int threads_ TF_GUARDED_BY(mu_) = 0;
  int in_use_ TF_GUARDED_BY(mu_) = 0;
  bool has_given_back_ TF_GUARDED_BY(mu_) = false;
  // Threads that are about to begin a run, or in one.
  int beginning_ TF_GUARDED_BY(mu_) = 0;
  Times times_ TF_GUARDED_BY(mu_);
  // The parent of those of the runs, which each have one of their own: an error
  // cancels a run.
  CancellationManager cancellation_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_STEP_PRODUCERS_H_
