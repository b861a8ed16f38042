// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_BUFFER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/ahead/buffer/draws_ahead.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/records/record_delivery.h"

namespace tensorflow {
namespace staging {

// The ops around the buffer of a divided function. They find the buffer by its
// handle, which is an argument, so one function serves several buffers.
inline constexpr char kStepBufferOp[] = "StepBuffer";
inline constexpr char kStepPutOp[] = "StepBufferPut";
inline constexpr char kStepTakeOp[] = "StepBufferTake";
inline constexpr char kStepTakeIfAnyOp[] = "StepBufferTakeIfAny";

// The buffer of a divided function. It counts what steps have taken:
//
//   errors   so that a step's own error can be told from one of the part ahead:
//            only after the latter does the part ahead go on;
//   takes    so that nothing is read that no step will use, where somebody
//            knows how many steps are to come.
//
// Its records are made on the CPU. It also knows where the rest wants them
// (RecordDelivery), so that they are copied there ahead of the step, as in sessions
// with stage_subgraph_on_cpu:
//
//   1. When the rest is placed, a pass moves its Take to the GPU, or to one of
//      several (step_delivery_pass.h).
//   2. The Take tells its buffer where it wants the records.
//   3. From then on a Put queues the copies. The records before are copied by
//      their Takes.
//
// The last tensors of its records are states of random generators, as they were
// after the record: what the program's generators are after the step that takes
// it, unless something else draws from them. The part ahead draws from copies
// (DrawsAhead).
class StepBuffer : public TensorBuffer {
 public:
  explicit StepBuffer(Options options)
      : TensorBuffer(AwaitingContinue(std::move(options))) {}

  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  // The copies from which the part ahead draws. Called before the first record.
  void DrawFrom(std::vector<core::RefCountPtr<Var>> copies) {
    draws_.DrawFrom(std::move(copies));
  }
  // Runs are about to draw one after the other.
  void BeginDraws(const std::shared_ptr<ReadSet>& reads) {
    draws_.Begin(reads);
  }

  // The next record was or will be drawn with these states; none: unknown.
  void ExpectStates(std::vector<Tensor> states) TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    expected_ = std::move(states);
  }
  // The program's generators have got these states: what waits, and what comes, is
  // drawn from there.
  void DrawOnFrom(const std::vector<Tensor>& states) TF_LOCKS_EXCLUDED(mu_) {
    ExpectStates(states);
    draws_.GoOnFrom(states);
  }
  // Returns the index of the first of the program's states that is not that with
  // which the next record was or will be drawn, or -1. If what had been read ahead
  // was rolled back, which a checkpoint may do that has set the states, too, draws
  // on from them.
  int FindChangedState(const std::vector<Tensor>& states)
      TF_LOCKS_EXCLUDED(mu_);
  // A step has taken a record.
  void NoteTaken(const std::vector<Tensor>& record) TF_LOCKS_EXCLUDED(mu_) {
    is_rolled_back_ = false;
    const size_t size = draws_.size();
    if (size == 0 || record.size() < size) return;
    ExpectStates({record.end() - size, record.end()});
  }

  void OnRollBack() override {
    is_rolled_back_ = true;
    TensorBuffer::OnRollBack();
    // What was dropped is made again, within the same limit.
    SayWanted();
  }

  // Where Puts deliver their records; null is the host.
  void DeliverTo(std::shared_ptr<const RecordDelivery> delivery)
      TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    delivery_.swap(delivery);
  }
  std::shared_ptr<const RecordDelivery> delivery() const
      TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return delivery_;
  }

  // What each GPU gets of a record, as the latest Take wants it; nothing before the
  // first Take.
  std::optional<std::vector<DeviceShare>> Destinations() const
      TF_LOCKS_EXCLUDED(mu_) {
    if (takes_ == 0) return std::nullopt;
    const std::shared_ptr<const RecordDelivery> to = delivery();
    return to == nullptr ? std::vector<DeviceShare>() : to->Destinations();
  }

  void NoteErrorTaken() { ++errors_taken_; }
  int64_t errors_taken() const { return errors_taken_; }

  // A step is about to take a record. Returns whether that is beyond the limit; then
  // SayWanted is to be called as soon as the take waits: a run that fails sooner would
  // let another begin.
  [[nodiscard]] bool NoteTake() { return ++takes_ > limit_; }
  void SayWanted() TF_LOCKS_EXCLUDED(mu_) {
    std::function<void()> on_wanted;
    {
      mutex_lock l(mu_);
      on_wanted = on_wanted_;
    }
    if (on_wanted != nullptr) on_wanted();
  }
  // It has got none. So it allows no record, and the limit is that of one take less.
  void NoteTakeFailed() {
    int64_t limit = limit_;
    while (limit != kNoLimit &&
           !limit_.compare_exchange_weak(limit, limit - 1)) {
    }
    --takes_;
  }

  // Allows the records of `steps` more takes, or any number: kNoLimit. A take
  // beyond them allows its own.
  void SetLimit(int64_t steps) {
    limit_ = steps == kNoLimit ? kNoLimit : takes_ + steps;
  }
  // Of how many more takes; kNoLimit if any number is allowed.
  int64_t left() const {
    const int64_t limit = limit_;
    return limit == kNoLimit ? limit : std::max<int64_t>(limit - takes_, 0);
  }
  // How many takes, those before included, may get records.
  int64_t allowed() const {
    return std::max<int64_t>(limit_.load(), takes_.load());
  }

  // What SayWanted calls: for each take beyond the limit, and when waiting records were
  // rolled back.
  void WhenWanted(std::function<void()> on_wanted) TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    on_wanted_ = std::move(on_wanted);
  }

 private:
  static Options AwaitingContinue(Options options) {
    options.goes_on = false;
    return options;
  }

  DrawsAhead draws_;
  // Whether anything was rolled back since a step has taken a record.
  std::atomic<bool> is_rolled_back_{false};
  std::atomic<int64_t> errors_taken_{0};
  std::atomic<int64_t> takes_{0};
  std::atomic<int64_t> limit_{kNoLimit};
  mutable mutex mu_;
  std::shared_ptr<const RecordDelivery> delivery_ TF_GUARDED_BY(mu_);
  std::vector<Tensor> expected_ TF_GUARDED_BY(mu_);
  std::function<void()> on_wanted_ TF_GUARDED_BY(mu_);
};

inline int StepBuffer::FindChangedState(const std::vector<Tensor>& states) {
  int changed = -1;
  {
    mutex_lock l(mu_);
    const size_t size = std::min(states.size(), expected_.size());
    for (size_t i = 0; i < size && changed < 0; ++i) {
      if (states[i].dtype() != expected_[i].dtype() ||
          states[i].tensor_data() != expected_[i].tensor_data()) {
        changed = static_cast<int>(i);
      }
    }
    if (size < states.size() && is_rolled_back_) changed = 0;
  }
  if (changed < 0 || !is_rolled_back_) return changed;
  DrawOnFrom(states);
  return -1;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_BUFFER_H_
