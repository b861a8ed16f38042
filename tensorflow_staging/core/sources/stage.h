// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_STAGE_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_STAGE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"
#include "tensorflow_staging/core/sources/read_set.h"

namespace tensorflow {
namespace staging {

// Who runs a region. A stage may join several sources, of which each has producers
// of its own. A worker does not know which thread of its client has begun a run, so
// there the producers of a source are not told apart: `number` is 0.
struct ProducerId {
  ProducerId(uint64_t number = 0)  // NOLINT(runtime/explicit)
      : source(number), number(number) {}
  ProducerId(uint64_t source, uint64_t number, bool is_ordered = false)
      : source(source), number(number), is_ordered(is_ordered) {}

  bool is_known() const { return number != 0; }

  uint64_t source;
  uint64_t number;
  // Whether the producers of the source make their records, and fail, in the order of
  // their runs (run_order.h): what one of them does comes after all that the others
  // have done before it.
  bool is_ordered = false;
};

// What a staged run leaves behind.
struct RunEnd {
  ProducerId producer;
  std::shared_ptr<ReadSet> reads;
  // Whether the run says nothing of the stage: it put a record, or is stale and
  // comes again.
  bool is_over = true;
  // Otherwise, with what it failed.
  Status status;
  // The stage's discards() when it began.
  int64_t discards = 0;
};

// A stage, as its runs and the iterators that they read see it: the buffer of its
// records. Thread-safe.
class Stage : public ResourceBase {
 public:
  using Done = absl::AnyInvocable<void(const Status&)>;

  explicit Stage(std::string name) : name_(std::move(name)) { ++num_stages_; }
  ~Stage() override { --num_stages_; }

  // Whether the process has any stage.
  static bool AnyExists() {
    return num_stages_.load(std::memory_order_relaxed) > 0;
  }

  const std::string& name() const { return name_; }

  // Begins a run of a producer. Returns whether it may read; if so, call EndRun.
  // Otherwise, AwaitRun waits until it may.
  virtual bool BeginRun(ProducerId producer) = 0;
  // After OK, call EndRun. CANCELLED if `cancellation`, which may be null, or the
  // stage was cancelled first.
  virtual void AwaitRun(ProducerId producer, CancellationManager* cancellation,
                        Done done) = 0;
  virtual void EndRun(RunEnd end) = 0;
  // A producer reports that its last run has ended the stage, with `cause`, or OK at
  // the end of the data.
  virtual void Close(const Status& cause, ProducerId producer) = 0;
  // Ends what waits, because the producers stop.
  virtual void Cancel() = 0;

  // Some of what the stage holds has become stale: drops it, and goes on if that
  // was why the stage had ended.
  virtual void OnRollBack() = 0;

  // How often the program has said that what waits must be made again. What a run
  // makes that began before is of no use.
  int64_t discards() const { return discards_.load(std::memory_order_acquire); }

 protected:
  std::atomic<int64_t> discards_{0};

 private:
  static std::atomic<int> num_stages_;

  const std::string name_;
};

// How a runner finds the buffer of its stage, if the session is a local one:
// the op that opens the buffer runs in the thread that calls the session.

// Where the ops that the calling thread runs leave the stage that they open;
// null if nobody asks.
core::WeakPtr<Stage>* ResumedStage();

// Asks for it. Must live on the stack of one thread.
class ScopedResumedStage {
 public:
  explicit ScopedResumedStage(core::WeakPtr<Stage>* stage);

 private:
  const ScopedThreadValue<core::WeakPtr<Stage>*> stage_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_STAGE_H_
