// SPDX-License-Identifier: Apache-2.0
//
// Tests on two streams of a fake GPU that a step reads the records of a stage
// on another stream, and not what the stage writes next.

#include "tensorflow_staging/core/records/lent_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/records/kernel_stream.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kRounds = 20;
constexpr int64_t kSize = 1024;

std::unique_ptr<Session> NewTestSession() {
  return std::unique_ptr<Session>(
      NewSession(OptionsWithStreams(/*gpus=*/1, /*streams=*/2)));
}

class LentTensorTest : public ::testing::Test {
 protected:
  LentTensorTest()
      : session_(NewTestSession()),
        step_(FakeGpu::Of(session_.get(), 0)),
        stage_(FakeGpu::Of(session_.get(), 1)) {
    TF_CHECK_OK(KernelStream::Of(*step_, &step_stream_));
    TF_CHECK_OK(KernelStream::Of(*stage_, &stage_stream_));
  }

  // Returns a tensor of the stage's memory, which a queued kernel fills.
  Tensor Compute(int64_t value) {
    Tensor tensor(stage_->GetAllocator({}), DT_INT64, {kSize});
    stage_->compute_stream()->ThenDoHostCallback(
        [data = tensor.flat<int64_t>().data(), value] {
          std::fill_n(data, kSize, value);
        });
    return tensor;
  }

  Tensor Lend(Tensor tensor) {
    return LendTensor(std::move(tensor), step_stream_,
                      [this](Tensor) { ++given_back_; });
  }

  // Queues a kernel of the step that reads `tensor`.
  void Read(const Tensor& tensor, std::atomic<int64_t>* value) {
    step_->compute_stream()->ThenDoHostCallback(
        [data = tensor.flat<int64_t>().data(), value] {
          *value = data[kSize / 2];
        });
  }

  // Returns how many of the kernels of a step that is late read another value
  // than that of their record.
  template <typename Handover>
  int WrongValues(Handover handover) {
    int wrong = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::atomic<int64_t> value{-1};
      Tensor record = Compute(round);
      TF_CHECK_OK(stage_->Sync());
      StoppedFakeGpu late(step_);
      {
        const Tensor taken = handover(std::move(record));
        record = Tensor();
        Read(taken, &value);
      }
      // The host is done with the record, and the stage computes the next one.
      const Tensor next = Compute(1000);
      TF_CHECK_OK(stage_->Sync());
      late.Release();
      TF_CHECK_OK(step_->Sync());
      if (value != round) ++wrong;
    }
    return wrong;
  }

  void AwaitGivenBack(int count) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (given_back_ < count) {
      ASSERT_LT(absl::Now(), deadline) << "The memory does not come back.";
      std::this_thread::yield();
    }
  }

  // Waits for a call from a stream that is not stopped. A call that did not
  // wait for the stopped stream would have come by then.
  static void AwaitCalls(const KernelStream& stream) {
    absl::Notification called;
    stream.ThenCall([&called] { called.Notify(); });
    called.WaitForNotification();
  }

  std::unique_ptr<Session> session_;
  FakeGpu* const step_;
  FakeGpu* const stage_;
  KernelStream step_stream_;
  KernelStream stage_stream_;
  std::atomic<int> given_back_{0};
};

// Why a loan is needed.
TEST_F(LentTensorTest, PlainReferencesReadTheNextRecord) {
  EXPECT_EQ(WrongValues([](Tensor record) { return record; }), kRounds);
}

TEST_F(LentTensorTest, LentTensorsAreRight) {
  EXPECT_EQ(
      WrongValues([this](Tensor record) { return Lend(std::move(record)); }),
      0);
  AwaitGivenBack(kRounds);
}

TEST_F(LentTensorTest, TheMemoryComesBackAfterTheLastReferenceAndItsKernels) {
  Tensor lent = Lend(Compute(1));
  Tensor slice = lent.Slice(0, 10);
  lent = Tensor();
  TF_CHECK_OK(step_->Sync());
  StoppedFakeGpu late(step_);
  slice = Tensor();
  // What is queued on the step's stream is not done yet.
  AwaitCalls(stage_stream_);
  EXPECT_EQ(given_back_, 0);
  late.Release();
  AwaitGivenBack(1);
}

// Kernels write their output into an input that nobody else uses.
TEST_F(LentTensorTest, OnlyTheOnlyTensorOfItsMemoryMayBeOverwritten) {
  EXPECT_TRUE(Lend(Compute(1)).RefCountIsOne());
  const Tensor constant = Compute(1);
  EXPECT_FALSE(Lend(constant).RefCountIsOne());
  EXPECT_EQ(Lend(constant).shape(), constant.shape());
  AwaitGivenBack(3);
}

TEST_F(LentTensorTest, ASessionMayCloseBeforeItsLoansEnd) {
  Tensor lent = Lend(Compute(1));
  StoppedFakeGpu late(step_);
  TF_CHECK_OK(session_->Close());
  session_.reset();
  lent = Tensor();
  late.Release();
  AwaitGivenBack(1);
}

TEST_F(LentTensorTest, AStreamCallsWhenWhatIsQueuedIsDone) {
  StoppedFakeGpu late(stage_);
  absl::Notification called;
  stage_stream_.ThenCall([&called] { called.Notify(); });
  AwaitCalls(step_stream_);
  EXPECT_FALSE(called.HasBeenNotified());
  late.Release();
  EXPECT_TRUE(called.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

TEST_F(LentTensorTest, OnlyWhatADeviceHasComputedIsWhereThatIs) {
  int asked = 0;
  const auto computed_on = [&asked] {
    ++asked;
    return std::string("GPU:1");
  };
  const Tensor copied = LendTensor(
      Compute(1), step_stream_, [](Tensor) {}, /*content=*/nullptr, "GPU:0");
  EXPECT_EQ(PlaceOf(Tensor(int64_t{1}), computed_on), "");
  EXPECT_EQ(PlaceOf(copied, computed_on), "GPU:0");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(PlaceOf(Compute(2), computed_on), "GPU:1");
  EXPECT_EQ(asked, 1);
  TF_CHECK_OK(stage_->Sync());
}

TEST(KernelStreamTest, StreamsOfOneGpuShareItsMemory) {
  SetFakeGpuCount(2);
  const std::unique_ptr<Session> two_gpus(NewSession(SessionOptions()));
  SetFakeGpuCount(1);
  const std::unique_ptr<Session> two_streams = NewTestSession();
  KernelStream streams[4];
  TF_CHECK_OK(KernelStream::Of(*FakeGpu::Of(two_gpus.get(), 0), &streams[0]));
  TF_CHECK_OK(KernelStream::Of(*FakeGpu::Of(two_gpus.get(), 1), &streams[1]));
  EXPECT_FALSE(streams[0].IsOnSameGpu(streams[1]));
  for (int i : {0, 1}) {
    TF_CHECK_OK(
        KernelStream::Of(*FakeGpu::Of(two_streams.get(), i), &streams[2 + i]));
  }
  EXPECT_TRUE(streams[2].IsOnSameGpu(streams[3]));
  EXPECT_TRUE(streams[0].IsOnSameGpu(streams[3]));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
