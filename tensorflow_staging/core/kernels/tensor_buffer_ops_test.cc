// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/core/sources/staged_run.h"
#include "tensorflow_staging/core/testing/stage_session.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(TensorBufferKernelsTest, TakesInTheOrderOfPuts) {
  StageSession session(/*capacity=*/5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(session.Put(i), OkStatus());
  EXPECT_EQ(session.Size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(session.Take(), i);
  EXPECT_EQ(session.Size(), 0);
}

TEST(TensorBufferKernelsTest, ConcurrentStepsLoseAndDuplicateNothing) {
  constexpr int kProducers = 8;
  constexpr int kConsumers = 8;
  constexpr int kRecords = 200;  // Per producer.
  StageSession session(/*capacity=*/3);
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  std::vector<std::atomic<int>> seen(kProducers * kRecords);
  {
    thread::ThreadPool consumers(Env::Default(), "consumers", kConsumers);
    for (int c = 0; c < kConsumers; ++c) {
      consumers.Schedule([&] {
        int64_t value;
        Status status;
        while ((status = session.Take(&value)).ok()) ++seen[value];
        EXPECT_TRUE(errors::IsOutOfRange(status)) << status;
      });
    }
    {
      thread::ThreadPool producers(Env::Default(), "producers", kProducers);
      for (int p = 0; p < kProducers; ++p) {
        producers.Schedule([&, p] {
          for (int i = 0; i < kRecords; ++i) {
            EXPECT_EQ(session.Put(p * kRecords + i), OkStatus());
          }
        });
      }
    }
    EXPECT_EQ(session.Run("TensorBufferClose"), OkStatus());
  }
  for (const std::atomic<int>& count : seen) ASSERT_EQ(count, 1);
}

// Runs with one inter-op thread and with none: a take that blocked its thread
// would stop every other step.
class FewThreadsTest : public ::testing::TestWithParam<int> {};

TEST_P(FewThreadsTest, WaitingOpsHoldNoThread) {
  StageSession session(/*capacity=*/1, /*inter_op_threads=*/GetParam());
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  std::atomic<int64_t> sum{0};
  {
    std::vector<std::unique_ptr<InThread>> takes;
    for (int i = 0; i < 3; ++i) {
      takes.push_back(
          std::make_unique<InThread>([&] { sum += session.Take(); }));
    }
    session.AwaitWaiting("0 puts and 3 takes");
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(session.Put(i), OkStatus());
  }
  EXPECT_EQ(sum, 6);

  EXPECT_EQ(session.Put(4), OkStatus());
  InThread put([&] { EXPECT_EQ(session.Put(5), OkStatus()); });
  session.AwaitWaiting("1 puts and 0 takes");
  EXPECT_EQ(session.Take(), 4);
  EXPECT_EQ(session.Take(), 5);
}

INSTANTIATE_TEST_SUITE_P(InterOpThreads, FewThreadsTest,
                         ::testing::Values(1, -1));

TEST(TensorBufferKernelsTest, ClosingTheSessionEndsAWaitingTake) {
  StageSession session(/*capacity=*/1);
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  InThread take([&] {
    const Status status = session.TakeStatus();
    EXPECT_TRUE(errors::IsCancelled(status)) << status;
  });
  session.AwaitWaiting("0 puts and 1 takes");
  EXPECT_EQ(session.session()->Close(), OkStatus());
}

TEST(TensorBufferKernelsTest, ClosingTheSessionEndsAWaitingPut) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Put(1), OkStatus());
  InThread put([&] {
    const Status status = session.Put(2);
    EXPECT_TRUE(errors::IsCancelled(status)) << status;
  });
  session.AwaitWaiting("1 puts and 0 takes");
  EXPECT_EQ(session.session()->Close(), OkStatus());
}

TEST(TensorBufferKernelsTest, ATimeoutOfTheStepEndsItsWait) {
  StageSession session(/*capacity=*/1);
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  RunOptions options;
  options.set_timeout_in_ms(20);
  RunMetadata metadata;
  std::vector<Tensor> outputs;
  const Status status = session.session()->Run(
      options, {}, {"prefetch/TensorBufferTake:0"}, {}, &outputs, &metadata);
  EXPECT_TRUE(errors::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(session.Put(1), OkStatus());
  EXPECT_EQ(session.Take(), 1);
}

TEST(TensorBufferKernelsTest, CancelEndsWaitsUntilResume) {
  StageSession session(/*capacity=*/1);
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  {
    InThread take([&] {
      const Status status = session.TakeStatus();
      EXPECT_TRUE(errors::IsCancelled(status)) << status;
    });
    session.AwaitWaiting("0 puts and 1 takes");
    EXPECT_EQ(session.Run("TensorBufferCancel"), OkStatus());
  }
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  EXPECT_EQ(session.Put(1), OkStatus());
  EXPECT_EQ(session.Take(), 1);
}

TEST(TensorBufferKernelsTest, CancelEndsAPutThatBelongsToNoRunner) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Put(1), OkStatus());
  {
    InThread put([&] {
      const Status status = session.Put(2);
      EXPECT_TRUE(errors::IsCancelled(status)) << status;
    });
    session.AwaitWaiting("1 puts and 0 takes");
    EXPECT_EQ(session.Run("TensorBufferCancel"), OkStatus());
  }
  EXPECT_EQ(session.Take(), 1);
}

// Begins a run of a producer of the session's stage. The buffer must exist.
std::shared_ptr<StagedRun> BeginRun(StageSession* session) {
  TensorBuffer* buffer = nullptr;
  TF_CHECK_OK(session->resources()->Lookup(StageTestGraph::kContainer,
                                           "prefetch", &buffer));
  return std::make_shared<StagedRun>(core::RefCountPtr<Stage>(buffer),
                                     /*producer=*/1);
}

StagedCall Of(const std::shared_ptr<StagedRun>& run) {
  StagedCall call;
  call.run = run;
  return call;
}

TEST(TensorBufferKernelsTest, CancelKeepsTheRecordOfARun) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Put(1), OkStatus());
  {
    InThread put([&] {
      const std::shared_ptr<StagedRun> run = BeginRun(&session);
      const ScopedStagedCall call(Of(run));
      EXPECT_EQ(session.Put(2), OkStatus());
      EXPECT_FALSE(run->End(OkStatus()));
    });
    session.AwaitWaiting("1 puts and 0 takes");
    EXPECT_EQ(session.Run("TensorBufferCancel"), OkStatus());
  }
  EXPECT_EQ(session.Take(), 1);
  EXPECT_EQ(session.Take(), 2);
}

// A run of the stage reads the next of an iterator, and puts it.
void PutNext(StageSession* session, TestIterator* iterator) {
  const std::shared_ptr<StagedRun> run = BeginRun(session);
  const int64_t number = iterator->Read(*run);
  const ScopedStagedCall call(Of(run));
  EXPECT_EQ(session->Put(number), OkStatus());
}

TEST(TensorBufferKernelsTest, ATakeOfARunHoldsWhatTheRecordWasMadeFrom) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Run("TensorBufferResume"), OkStatus());
  TestIterator iterator;
  PutNext(&session, &iterator);
  const std::shared_ptr<StagedRun> takes = BeginRun(&session);
  {
    const ScopedStagedCall call(Of(takes));
    EXPECT_EQ(session.Take(), 0);
  }
  EXPECT_FALSE(takes->reads()->empty());
  EXPECT_FALSE(takes->IsStale());
  EXPECT_EQ(iterator.Unused(), Numbers{0});
  iterator.Change();
  EXPECT_TRUE(takes->IsStale());
}

TEST(TensorBufferKernelsTest, ATakeOfAStepUsesWhatTheRecordWasMadeFrom) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Run("TensorBufferResume"), OkStatus());
  TestIterator iterator;
  PutNext(&session, &iterator);
  EXPECT_EQ(session.Take(), 0);
  EXPECT_EQ(iterator.Unused(), Numbers());
}

TEST(TensorBufferKernelsTest, ATakeOfAStaleRunFailsAndGivesBackTheRecord) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Run("TensorBufferResume"), OkStatus());
  TestIterator iterator;
  PutNext(&session, &iterator);
  const std::shared_ptr<StagedRun> run = BeginRun(&session);
  GiveBack(run->reads());
  {
    const ScopedStagedCall call(Of(run));
    const Status status = session.TakeStatus();
    EXPECT_TRUE(Contains(status, "is repeated")) << status;
  }
  EXPECT_EQ(iterator.ReadBeside(), 0);
}

TEST(TensorBufferKernelsTest, AnEndThatARunTakesFailsItsLaterReads) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Run("TensorBufferResume"), OkStatus());
  EXPECT_EQ(session.Run("TensorBufferClose"), OkStatus());
  TensorBuffer::Options options;
  options.name = "later";
  core::RefCountPtr<TensorBuffer> later(new TensorBuffer(options));
  const auto run = std::make_shared<StagedRun>(
      tsl::core::GetNewRef<Stage>(later.get()), /*producer=*/1);
  const ScopedStagedCall call(Of(run));
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeStatus()));
  const Status failure = run->EnterRead();
  EXPECT_TRUE(errors::IsOutOfRange(failure)) << failure;
}

TEST(TensorBufferKernelsTest, ATakeOfARunWaitsUntilTheRunMayRead) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Put(1), OkStatus());
  TensorBuffer::Options options;
  options.name = "later";
  core::RefCountPtr<TensorBuffer> later(new TensorBuffer(options));
  later->Close(OkStatus());
  const auto run = std::make_shared<StagedRun>(
      tsl::core::GetNewRef<Stage>(later.get()), /*producer=*/1);
  {
    InThread take([&] {
      const ScopedStagedCall call(Of(run));
      EXPECT_EQ(session.Take(), 1);
    });
    while (!absl::StrContains(later->DebugString(), "1 runs, ")) {
      std::this_thread::yield();
    }
    EXPECT_EQ(session.Size(), 1);
    later->Resume();
  }
  EXPECT_EQ(session.Size(), 0);
}

// It may have read what is no iterator, and cannot be read again.
TEST(TensorBufferKernelsTest, APutOfARunWaitsUntilTheStageGoesOn) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Run("TensorBufferClose"), OkStatus());
  {
    InThread put([&] {
      const std::shared_ptr<StagedRun> run = BeginRun(&session);
      EXPECT_FALSE(run->is_admitted());
      const ScopedStagedCall call(Of(run));
      EXPECT_EQ(session.Put(1), OkStatus());
    });
    session.AwaitWaiting("1 runs, 0 puts and 0 takes");
    EXPECT_EQ(session.Run("TensorBufferResume"), OkStatus());
  }
  EXPECT_EQ(session.Take(), 1);
}

TEST(TensorBufferKernelsTest, DiscardDropsTheRecords) {
  StageSession session(/*capacity=*/2);
  EXPECT_EQ(session.Discard(), 0);
  EXPECT_EQ(session.Put(1), OkStatus());
  EXPECT_EQ(session.Put(2), OkStatus());
  EXPECT_EQ(session.Discard(), 2);
  EXPECT_EQ(session.Size(), 0);
}

TEST(TensorBufferKernelsTest, ResumeShowsItsStageToAnyoneInTheThreadWhoAsks) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Run("TensorBufferResume"), OkStatus());
  RunOptions in_caller;
  in_caller.set_inter_op_thread_pool(-1);
  RunMetadata metadata;
  core::WeakPtr<Stage> stage;
  {
    const ScopedResumedStage resumed(&stage);
    EXPECT_EQ(session.session()->Run(in_caller, {}, {},
                                     {"prefetch/TensorBufferResume"}, nullptr,
                                     &metadata),
              OkStatus());
  }
  const core::RefCountPtr<Stage> found = stage.GetNewRef();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name(), "prefetch");
}

TEST(TensorBufferKernelsTest, TheErrorOfAnUnfedTakeNamesTheStageAndTheHook) {
  StageSession session(/*capacity=*/1);
  // The first op finds this buffer, whose short timeout keeps the test short.
  TensorBuffer::Options impatient;
  impatient.name = "prefetch";
  impatient.idle_timeout_millis = 2;
  ASSERT_EQ(
      session.resources()->Create(StageTestGraph::kContainer, impatient.name,
                                  new TensorBuffer(impatient)),
      OkStatus());
  const Status status = session.TakeStatus();
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status, "'prefetch'")) << status;
  EXPECT_TRUE(Contains(status, "tf.make_prefetch_hook()")) << status;
}

TEST(TensorBufferKernelsTest, CloseDrainsThenEndsTheData) {
  StageSession session(/*capacity=*/2);
  EXPECT_EQ(session.Put(1), OkStatus());
  EXPECT_EQ(session.Put(2), OkStatus());
  EXPECT_EQ(session.Run("TensorBufferClose"), OkStatus());
  EXPECT_EQ(session.Take(), 1);
  EXPECT_EQ(session.Take(), 2);
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeStatus()));
}

TEST(TensorBufferKernelsTest, TheCauseArrivesWithCodeAndMessage) {
  StageSession session(/*capacity=*/2);
  EXPECT_EQ(session.Put(1), OkStatus());
  EXPECT_EQ(session.CloseStage(Tensor(int32{error::DATA_LOSS}),
                               Tensor("truncated [[{{node reader}}]]")),
            OkStatus());
  EXPECT_EQ(session.Take(), 1);
  const Status status = session.TakeStatus();
  EXPECT_TRUE(errors::IsDataLoss(status)) << status;
  EXPECT_TRUE(Contains(status, "truncated [[{{node reader}}]]")) << status;
}

TEST(TensorBufferKernelsTest, CloseRejectsNonScalars) {
  StageSession session(/*capacity=*/1);
  const Tensor vector(DT_INT32, TensorShape({2}));
  const Status status = session.CloseStage(vector, Tensor(""));
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status, "error_code must be a scalar, got shape [2]"))
      << status;
}

TEST(TensorBufferKernelsTest, ATakeRejectsARecordOfOtherTypes) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.PutOther(), OkStatus());
  const Status status = session.TakeStatus();
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status, "record of float where")) << status;
}

TEST(TensorBufferKernelsTest, AnEmptySharedNameIsRejected) {
  StageSession session(/*capacity=*/1);
  const Status status = session.session()->Run({}, {}, {"nameless"}, nullptr);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status, "shared_name of TensorBufferCancel is empty"))
      << status;
}

TEST(TensorBufferKernelsTest, ACapacityOfZeroIsRejected) {
  StageSession session(/*capacity=*/0);
  const Status status = session.Put(1);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status, "is 0; it must be at least 1, or -1")) << status;
}

TEST(TensorBufferKernelsTest, StatsAreThoseOfTheBuffer) {
  StageSession session(/*capacity=*/3);
  ASSERT_EQ(session.Put(1), OkStatus());
  ASSERT_EQ(session.Put(2), OkStatus());
  session.Take();
  const BufferStats stats = session.Stats();
  EXPECT_EQ(stats.capacity(), 3);
  EXPECT_EQ(stats.records(), 1);
  EXPECT_EQ(stats.put(), 2);
  EXPECT_EQ(stats.taken(), 1);
  EXPECT_EQ(stats.state(), "open");
}

TEST(TensorBufferKernelsTest, ATunedCapacityBeginsWithFour) {
  StageSession session(/*capacity=*/kAutotune);
  const BufferStats stats = session.Stats();
  EXPECT_TRUE(stats.tunes_capacity());
  EXPECT_EQ(stats.capacity(), 4);
  EXPECT_EQ(stats.capacity_bytes(), int64_t{512} << 20);
}

// On a GPU, records stay in the device's memory, and the inputs and outputs of
// the control ops stay in host memory.
TEST(TensorBufferKernelsTest, AreRegisteredForCpuAndGpu) {
  const std::vector<std::pair<std::string, std::vector<std::string>>>
      host_memory_of = {{"TensorBufferPut", {}},
                        {"TensorBufferTake", {}},
                        {"TensorBufferCancel", {}},
                        {"TensorBufferResume", {}},
                        {"TensorBufferClose", {"error_code", "error_message"}},
                        {"TensorBufferDiscard", {"discarded"}},
                        {"TensorBufferSize", {"size"}},
                        {"TensorBufferStats", {"stats"}}};
  for (const auto& [op, expected] : host_memory_of) {
    std::vector<std::string> devices;
    const KernelList kernels = GetRegisteredKernelsForOp(op);
    for (const KernelDef& kernel : kernels.kernel()) {
      devices.push_back(kernel.device_type());
      const std::vector<std::string> host_memory(
          kernel.host_memory_arg().begin(), kernel.host_memory_arg().end());
      if (kernel.device_type() == DEVICE_GPU) {
        EXPECT_EQ(host_memory, expected) << op;
      } else {
        EXPECT_TRUE(host_memory.empty()) << op;
      }
    }
    std::sort(devices.begin(), devices.end());
    EXPECT_EQ(devices, (std::vector<std::string>{"CPU", "GPU"})) << op;
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
