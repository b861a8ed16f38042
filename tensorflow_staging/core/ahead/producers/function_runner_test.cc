// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/producers/function_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/buffer/capacity_tuner.h"
#include "tensorflow_staging/core/buffer/room.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

core::RefCountPtr<StepBuffer> MakeBuffer(int64_t capacity) {
  TensorBuffer::Options options;
  options.name = "step";
  options.capacity = capacity;
  return core::RefCountPtr<StepBuffer>(new StepBuffer(options));
}

Status Put(StepBuffer* buffer, int64_t value,
           CancellationManager* cancellation) {
  Status result;
  Notification done;
  buffer->PutForRun(
      StagedRun::Find(cancellation), {Tensor(value)},
      /*timeout_millis=*/0, cancellation, [](TensorBuffer::Record*) {},
      [&](const Status& status) {
        result = status;
        done.Notify();
      });
  done.WaitForNotification();
  return result;
}

Status Take(StepBuffer* buffer, int64_t* value,
            CancellationManager* cancellation = nullptr) {
  const bool is_wanted = buffer->NoteTake();
  Status result;
  Notification done;
  buffer->TakeAsync(cancellation,
                    [&](const Status& status, TensorBuffer::Taken taken) {
                      result = status;
                      if (status.ok()) {
                        *value = taken.record[0].scalar<int64_t>()();
                      } else {
                        buffer->NoteTakeFailed();
                      }
                      done.Notify();
                    });
  if (is_wanted) buffer->SayWanted();
  done.WaitForNotification();
  return result;
}

// Waits until a take waits.
void AwaitTake(const StepBuffer& buffer) {
  while (buffer.GetStats().waiting_takes() == 0) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// A region whose element `failing` is an error, and whose data ends at `end`.
// Each third record takes longer than the next ones.
class Region {
 public:
  Region(int64_t failing, int64_t end) : failing_(failing), end_(end) {}

  FunctionRuns::RunRegion PuttingInto(StepBuffer* buffer) {
    return [this, buffer](CancellationManager* cancellation) -> Status {
      const int64_t element = next_++;
      if (element == failing_) return errors::InvalidArgument("element");
      if (element >= end_) return errors::OutOfRange("end");
      StagedRun::Find(cancellation)->EndReads();
      if (element % 3 == 0) absl::SleepFor(absl::Milliseconds(1));
      return Put(buffer, element, cancellation);
    };
  }

  int64_t read() const { return next_; }

 private:
  const int64_t failing_;
  const int64_t end_;
  std::atomic<int64_t> next_{0};
};

// Expects that the records end, and that no run begins.
void ExpectStopped(StepBuffer* buffer) {
  int64_t value = 0;
  Status status;
  while ((status = Take(buffer, &value)).ok()) {
  }
  EXPECT_TRUE(errors::IsCancelled(status)) << status;
  EXPECT_FALSE(buffer->BeginRun(/*producer=*/100));
}

class FunctionRunnerTest : public ::testing::TestWithParam<int> {
 protected:
  // Starts the producers of a region.
  void Start(int64_t capacity, int64_t failing, int64_t end,
             int64_t limit = StepBuffer::kNoLimit) {
    core::RefCountPtr<StepBuffer> buffer = MakeBuffer(capacity);
    records_ = buffer.get();
    records_->SetLimit(limit);
    region_.emplace(failing, end);
    runner_.emplace(std::move(buffer), GetParam(),
                    region_->PuttingInto(records_));
  }

  // Lives as long as the runner.
  StepBuffer* records_ = nullptr;
  std::optional<Region> region_;
  std::optional<FunctionRunner> runner_;
};

TEST_P(FunctionRunnerTest, EachRecordIsPutOnceInOrder) {
  Start(/*capacity=*/2, /*failing=*/-1, /*end=*/50);
  int64_t value = 0;
  int taken = 0;
  while (Take(records_, &value).ok()) EXPECT_EQ(value, taken++);
  EXPECT_EQ(taken, 50);
  EXPECT_TRUE(errors::IsOutOfRange(Take(records_, &value)));
  runner_->Stop();
  EXPECT_EQ(runner_->GetCounts().threads, 0);
}

TEST_P(FunctionRunnerTest, TakesWaitForTheNextRunner) {
  Start(/*capacity=*/2, /*failing=*/-1, /*end=*/50, /*limit=*/0);
  constexpr int kTakes = 4;
  std::vector<int64_t> taken(kTakes, -1);
  std::vector<std::thread> takes;
  runner_->StopForNext();
  EXPECT_EQ(region_->read(), 0);
  for (int64_t& value : taken) {
    takes.emplace_back(
        [this, &value] { TF_EXPECT_OK(Take(records_, &value)); });
  }
  StepBuffer* const buffer = records_;
  FunctionRunner next(tsl::core::GetNewRef(buffer), /*num_threads=*/1,
                      region_->PuttingInto(records_));
  for (std::thread& take : takes) take.join();
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(region_->read(), kTakes);
  next.Stop();
  ExpectStopped(records_);
}

TEST_P(FunctionRunnerTest, ATakeThatWaitsKeepsItsRead) {
  core::RefCountPtr<StepBuffer> buffer = MakeBuffer(2);
  StepBuffer* const records = buffer.get();
  Notification reads, may_end;
  std::atomic<int> cancelled{0};
  FunctionRunner runner(std::move(buffer), /*num_threads=*/1,
                        [&](CancellationManager* cancellation) -> Status {
                          if (!reads.HasBeenNotified()) reads.Notify();
                          may_end.WaitForNotification();
                          if (cancellation->IsCancelled()) ++cancelled;
                          return Put(records, 7, cancellation);
                        });
  int64_t value = 0;
  std::thread take([&] { TF_EXPECT_OK(Take(records, &value)); });
  reads.WaitForNotification();
  AwaitTake(*records);
  // Far longer than a stage whose records nobody awaits lets a read go on.
  std::thread ends([&] {
    absl::SleepFor(absl::Milliseconds(200));
    may_end.Notify();
  });
  runner.StopForNext();
  take.join();
  ends.join();
  EXPECT_EQ(value, 7);
  EXPECT_EQ(cancelled, 0);
}

TEST_P(FunctionRunnerTest, AnErrorIsTakenOnceAndTheNextElementFollows) {
  Start(/*capacity=*/2, /*failing=*/3, /*end=*/6);
  int64_t value = 0;
  int taken = 0, failed = 0;
  while (true) {
    const Status status = Take(records_, &value);
    if (errors::IsOutOfRange(status)) break;
    if (status.ok()) {
      EXPECT_EQ(value, taken + failed);
      ++taken;
    } else {
      ++failed;
      ASSERT_EQ(failed, 1) << status;
      EXPECT_EQ(taken, 3);
      runner_->Continue();
    }
  }
  EXPECT_EQ(taken, 5);
  EXPECT_EQ(failed, 1);
  runner_->Stop();
}

TEST_P(FunctionRunnerTest, NothingIsReadBeyondTheLimitUntilAStepAsks) {
  Start(/*capacity=*/10, /*failing=*/-1, /*end=*/1000, /*limit=*/3);
  int64_t value = 0;
  const auto take = [&](int number) {
    for (int i = 0; i < number; ++i) {
      EXPECT_TRUE(Take(records_, &value).ok());
    }
  };
  take(3);
  EXPECT_EQ(region_->read(), 3);
  take(2);
  EXPECT_EQ(region_->read(), 5);
  runner_->SetLimit(4);
  take(4);
  runner_->Stop();
  EXPECT_EQ(region_->read(), 9);
}

TEST_P(FunctionRunnerTest, NothingIsReadAfterAnErrorUntilAStepAsks) {
  Start(/*capacity=*/10, /*failing=*/1, /*end=*/1000, /*limit=*/0);
  int64_t value = 0;
  EXPECT_TRUE(Take(records_, &value).ok());
  EXPECT_TRUE(errors::IsInvalidArgument(Take(records_, &value)));
  runner_->Continue();
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(region_->read(), 2);
  EXPECT_TRUE(Take(records_, &value).ok());
  EXPECT_EQ(value, 2);
  runner_->Stop();
  EXPECT_EQ(region_->read(), 3);
}

// A program may read beside the stage, or restore the iterator.
TEST_P(FunctionRunnerTest, WhatIsRolledBackIsMadeAgainWithinTheLimit) {
  Start(/*capacity=*/10, /*failing=*/-1, /*end=*/1000, /*limit=*/2);
  while (records_->Size() < 2) absl::SleepFor(absl::Milliseconds(1));
  const int64_t read = region_->read();
  // Its records come from no iterator, so they are dropped.
  EXPECT_EQ(records_->Discard(), 2);
  records_->OnRollBack();
  while (records_->Size() < 2) absl::SleepFor(absl::Milliseconds(1));
  runner_->Stop();
  EXPECT_EQ(region_->read(), read + 2);
}

TEST_P(FunctionRunnerTest, ALimitCanBeLifted) {
  Start(/*capacity=*/10, /*failing=*/-1, /*end=*/1000, /*limit=*/1);
  runner_->SetLimit(StepBuffer::kNoLimit);
  while (region_->read() < 10) Env::Default()->SleepForMicroseconds(100);
  runner_->Stop();
}

TEST_P(FunctionRunnerTest, StopCancelsWhatWaits) {
  Start(/*capacity=*/1, /*failing=*/-1, /*end=*/1000);
  int64_t value = 0;
  EXPECT_TRUE(Take(records_, &value).ok());
  runner_->Stop();
  EXPECT_EQ(runner_->GetCounts().threads, 0);
  runner_->Stop();
}

// A step goes on after an error while another thread stops the stage.
TEST_P(FunctionRunnerTest, ContinueAfterStopLeavesTheStageStopped) {
  Start(/*capacity=*/1, /*failing=*/0, /*end=*/1000);
  int64_t value = 0;
  EXPECT_TRUE(errors::IsInvalidArgument(Take(records_, &value)));
  runner_->Stop();
  runner_->Continue();
  ExpectStopped(records_);
}

// The thread of Stop has cancelled the buffer, and is stopped there.
TEST_P(FunctionRunnerTest, ContinueInTheMiddleOfStopLeavesTheStageStopped) {
  Start(/*capacity=*/1, /*failing=*/0, /*end=*/1000);
  int64_t value = 0;
  EXPECT_TRUE(errors::IsInvalidArgument(Take(records_, &value)));
  Notification is_stopped, may_go_on;
  records_->AwaitRun(/*producer=*/99, nullptr, [&](const Status& status) {
    EXPECT_TRUE(errors::IsCancelled(status)) << status;
    is_stopped.Notify();
    may_go_on.WaitForNotification();
  });
  std::thread stop([&] { runner_->Stop(); });
  is_stopped.WaitForNotification();
  runner_->Continue();
  ExpectStopped(records_);
  may_go_on.Notify();
  stop.join();
  ExpectStopped(records_);
}

// The thread of Continue has opened the buffer, and is stopped there.
TEST_P(FunctionRunnerTest, StopInTheMiddleOfContinueLeavesTheStageStopped) {
  Start(/*capacity=*/1, /*failing=*/0, /*end=*/1000);
  int64_t value = 0;
  EXPECT_TRUE(errors::IsInvalidArgument(Take(records_, &value)));
  Notification is_stopped, may_go_on;
  records_->AwaitRun(/*producer=*/99, nullptr, [&](const Status& status) {
    EXPECT_EQ(status, OkStatus());
    is_stopped.Notify();
    may_go_on.WaitForNotification();
  });
  std::thread continues([&] { runner_->Continue(); });
  is_stopped.WaitForNotification();
  runner_->Stop();
  records_->EndRun({/*producer=*/99});
  may_go_on.Notify();
  continues.join();
  ExpectStopped(records_);
}

TEST_P(FunctionRunnerTest, StopWaitsOnceForCodeThatCannotBeCancelled) {
  std::atomic<bool> is_running{false};
  Notification may_return;
  FunctionRunner runner(MakeBuffer(1), GetParam(), [&](CancellationManager*) {
    is_running = true;
    may_return.WaitForNotification();
    return errors::OutOfRange("end");
  });
  while (!is_running) absl::SleepFor(absl::Milliseconds(1));
  runner.Stop();
  const absl::Time began = absl::Now();
  runner.Stop();
  EXPECT_LT(absl::Now() - began, absl::Seconds(1));
  EXPECT_GT(runner.GetCounts().threads, 0);
  may_return.Notify();
  while (runner.GetCounts().threads > 0) absl::SleepFor(absl::Milliseconds(1));
}

// A stage whose only run is in code that cannot be cancelled, for which a take
// waits.
class AwaitedRunTest : public ::testing::Test {
 protected:
  AwaitedRunTest()
      : buffer_(MakeBuffer(1)),
        runner_(tsl::core::GetNewRef(buffer_.get()), /*num_threads=*/1,
                [this](CancellationManager* cancellation) -> Status {
                  if (!is_running_.HasBeenNotified()) is_running_.Notify();
                  may_put_.WaitForNotification();
                  return Put(buffer_.get(), 7, cancellation);
                }),
        take_([this] { taken_ = Take(buffer_.get(), &value_, &of_take_); }) {
    is_running_.WaitForNotification();
    AwaitTake(*buffer_);
  }
  ~AwaitedRunTest() override {
    while (runner_.GetCounts().threads > 0) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  const core::RefCountPtr<StepBuffer> buffer_;
  Notification is_running_, may_put_;
  CancellationManager of_take_;
  Status taken_;
  int64_t value_ = 0;
  FunctionRunner runner_;
  std::thread take_;
};

TEST_F(AwaitedRunTest, StopForNextAwaitsItUntilNoTakeDoes) {
  Notification has_stopped;
  std::thread stop([&] {
    runner_.StopForNext();
    has_stopped.Notify();
  });
  // Longer than any stop waits for code that no take awaits.
  absl::SleepFor(absl::Seconds(2));
  EXPECT_FALSE(has_stopped.HasBeenNotified());
  of_take_.StartCancel();
  take_.join();
  EXPECT_TRUE(errors::IsCancelled(taken_)) << taken_;
  stop.join();
  EXPECT_GT(runner_.GetCounts().threads, 0);
  may_put_.Notify();
}

TEST_F(AwaitedRunTest, StopEndsBesideAStopForNext) {
  Notification has_stopped;
  std::thread stop([&] {
    runner_.StopForNext();
    has_stopped.Notify();
  });
  while (buffer_->BeginRun(/*producer=*/100)) {
    buffer_->EndRun({/*producer=*/100});
  }
  runner_.Stop();
  EXPECT_FALSE(has_stopped.HasBeenNotified());
  // The take still gets what it waits for.
  may_put_.Notify();
  take_.join();
  TF_EXPECT_OK(taken_);
  EXPECT_EQ(value_, 7);
  stop.join();
}

// Runs a stage whose records take long, and whose steps do not, until `done`
// says of its number of threads that it suffices.
void RunUntil(const std::shared_ptr<StageTuning>& tuning,
              const std::function<bool(int)>& done) {
  core::RefCountPtr<StepBuffer> buffer = MakeBuffer(8);
  StepBuffer* const records = buffer.get();
  FunctionRunner runner(
      std::move(buffer), /*num_threads=*/1,
      [records](CancellationManager* cancellation) {
        absl::SleepFor(absl::Milliseconds(10));
        return Put(records, 0, cancellation);
      },
      tuning);
  int64_t value;
  while (!done(runner.GetCounts().threads)) TF_ASSERT_OK(Take(records, &value));
  runner.Stop();
}

TEST(FunctionRunnerTuningTest, StagesOfAStepGoOnWithTheNumberThatWasFound) {
  const auto tuning = std::make_shared<StageTuning>(/*tunes_threads=*/true);
  EXPECT_EQ(tuning->threads(), 1);
  RunUntil(tuning, [](int threads) { return threads > 1; });
  EXPECT_GT(tuning->threads(), 1);
  RunUntil(tuning, [](int threads) {
    EXPECT_GT(threads, 1);
    return true;
  });
}

TEST(FunctionRunnerTuningTest, StagesOfAStepGoOnWithTheCapacityThatWasFound) {
  StageTuning tuning(/*tunes_threads=*/false);
  const auto make_runs = [] {
    return FunctionRuns(MakeBuffer(kAutotune), nullptr);
  };
  FunctionRuns first = make_runs();
  const int64_t stage = tuning.Begin();
  EXPECT_EQ(first.buffer()->GetStats().capacity(),
            CapacityTuner::kLeastCapacity);
  Room found(kAutotune, /*capacity_bytes=*/0, /*device_capacity_bytes=*/0);
  const Room unchanged = found;
  // Full, empty and full again.
  found.OnFull(1000);
  found.OnTake(3, /*paused=*/false);
  found.OnTakeWaited(1000);
  found.OnFull(3000);
  found.OnTake(3, /*paused=*/false);
  ASSERT_EQ(found.capacity(), 2 * CapacityTuner::kLeastCapacity);
  first.buffer()->GoOnWith(found);
  tuning.OnRecord(stage, "first", /*records=*/1, &first);
  FunctionRuns second = make_runs();
  tuning.Begin();
  tuning.GiveCapacityTo(second.buffer());
  EXPECT_EQ(second.buffer()->GetStats().capacity(), found.capacity());
  // The stage before tunes no more.
  first.buffer()->GoOnWith(unchanged);
  tuning.OnRecord(stage, "first", /*records=*/2, &first);
  FunctionRuns third = make_runs();
  tuning.GiveCapacityTo(third.buffer());
  EXPECT_EQ(third.buffer()->GetStats().capacity(), found.capacity());
}

INSTANTIATE_TEST_SUITE_P(Threads, FunctionRunnerTest,
                         ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace staging
}  // namespace tensorflow
