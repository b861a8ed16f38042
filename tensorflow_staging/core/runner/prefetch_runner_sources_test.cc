// SPDX-License-Identifier: Apache-2.0
//
// Tests runners of stages that read an iterator, which is initialised again.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/sources/iterator_changes.h"
#include "tensorflow_staging/core/sources/iterator_reads.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/testing/runner_stage.h"

namespace tensorflow {
namespace staging {
namespace {

// An iterator that yields `size` records after each initialisation. After g
// initialisations, its records are 1000 * g, 1000 * g + 1 ... Its methods call
// the hooks as those of an IteratorResource do.
class Epochs {
 public:
  Epochs(const std::string& source, int64_t size) : size_(size) {
    Sources::Get()->Set(
        source, [this](OpKernelContext* ctx, AsyncOpKernel::DoneCallback done) {
          std::vector<Tensor> element;
          const Status status = GetNext(ctx, &element);
          if (status.ok()) {
            ctx->set_output(0, element[0]);
          } else {
            ctx->SetStatus(status);
          }
          done();
        });
    Sources::Get()->Set(kInitializer, [this](OpKernelContext* ctx,
                                             AsyncOpKernel::DoneCallback done) {
      Initialize(ctx);
      ctx->set_output(0, Tensor(int64_t{0}));
      done();
    });
  }

  ~Epochs() { Source::Forget(this); }

  void Initialize(OpKernelContext* ctx) {
    IteratorChange change = IteratorChange::Initialise(this, ctx);
    TF_CHECK_OK(change.Prepare());
    {
      mutex_lock l(mu_);
      epoch_ = std::make_shared<Epoch>(epoch_->generation + 1, size_);
      change.Apply();
    }
    change.Finish();
  }

  // Makes the next call of the source fail with `status`.
  void FailNext(const Status& status) {
    mutex_lock l(mu_);
    failure_ = status;
  }

  // Makes the next call of the source wait for `*may_end` after `*began`.
  void HoldNext(Notification* began, Notification* may_end) {
    mutex_lock l(mu_);
    began_ = began;
    may_end_ = may_end;
  }

  void Resize(int64_t size) {
    mutex_lock l(mu_);
    size_ = size;
  }

  // Returns the records of one generation.
  static std::vector<int64_t> Records(int64_t generation, int64_t size) {
    std::vector<int64_t> records = Range(size);
    for (int64_t& record : records) record += 1000 * generation;
    return records;
  }

 private:
  struct Epoch {
    Epoch(int64_t generation, int64_t size)
        : generation(generation), size(size) {}

    const int64_t generation;
    const int64_t size;
    std::atomic<int64_t> next{0};
  };

  Status GetNext(OpKernelContext* ctx, std::vector<Tensor>* element) {
    IteratorRead read(ctx, this);
    TF_RETURN_IF_ERROR(read.Await());
    std::shared_ptr<Epoch> epoch;
    Status failure;
    Notification* began;
    Notification* may_end;
    {
      mutex_lock l(mu_);
      epoch = epoch_;
      failure = std::exchange(failure_, OkStatus());
      began = std::exchange(began_, nullptr);
      may_end = may_end_;
      read.Begin();
    }
    bool is_end = false;
    Status status;
    if (!read.Answers(element, &is_end, &status)) {
      Read(epoch.get(), failure, began, may_end, element, &is_end, &status);
      read.End(element, &is_end, &status);
    }
    if (status.ok() && is_end) return errors::OutOfRange("end of sequence");
    return status;
  }

  // Yields the next of an epoch, as an iterator of tf.data does.
  static void Read(Epoch* epoch, const Status& failure, Notification* began,
                   Notification* may_end, std::vector<Tensor>* element,
                   bool* is_end, Status* status) {
    if (began != nullptr) {
      began->Notify();
      may_end->WaitForNotification();
    }
    *status = failure;
    if (!failure.ok()) return;
    const int64_t next = epoch->next++;
    *is_end = next >= epoch->size;
    if (!*is_end) *element = {Tensor(1000 * epoch->generation + next)};
  }

  mutex mu_;
  int64_t size_ TF_GUARDED_BY(mu_);
  std::shared_ptr<Epoch> epoch_ TF_GUARDED_BY(mu_) =
      std::make_shared<Epoch>(0, size_);
  Status failure_ TF_GUARDED_BY(mu_);
  Notification* began_ TF_GUARDED_BY(mu_) = nullptr;
  Notification* may_end_ TF_GUARDED_BY(mu_) = nullptr;
};

constexpr int64_t kEndless = 1000000;

StageConfig WithThreads(int num_threads) {
  StageConfig config;
  config.num_threads = num_threads;
  return config;
}

class EpochsTest : public ::testing::TestWithParam<int> {};

TEST_P(EpochsTest, EachEpochIsCompleteAndEndsWithOutOfRange) {
  constexpr int64_t kSize = 40;
  Epochs epochs(kSource, kSize);
  RunnerSession session(WithThreads(GetParam()));
  auto runner = session.StartRunner();
  for (int64_t epoch = 0; epoch < 25; ++epoch) {
    std::vector<int64_t> values;
    const Status status = session.TakeAll(&values);
    EXPECT_TRUE(errors::IsOutOfRange(status)) << status;
    std::sort(values.begin(), values.end());
    ASSERT_EQ(values, Epochs::Records(epoch, kSize));
    ASSERT_EQ(session.Initialize(), OkStatus());
  }
  // It runs again, with its first records.
  int64_t value;
  while (!runner->GetStats().running) {
    ASSERT_EQ(session.Take(&value), OkStatus());
  }
}

TEST_P(EpochsTest, AnInitialisationInTheMiddleOfTheDataDiscardsTheRest) {
  Epochs epochs(kSource, kEndless);
  RunnerSession session(WithThreads(GetParam()));
  auto runner = session.StartRunner();
  for (int64_t epoch = 0; epoch < 25; ++epoch) {
    std::vector<int64_t> values(5);
    for (int64_t& value : values) ASSERT_EQ(session.Take(&value), OkStatus());
    EXPECT_GE(*std::min_element(values.begin(), values.end()), 1000 * epoch);
    EXPECT_LT(*std::max_element(values.begin(), values.end()),
              1000 * epoch + 1000);
    // One thread yields the records in order, starting with the first.
    if (GetParam() == 1) {
      EXPECT_EQ(values, Epochs::Records(epoch, 5));
    }
    ASSERT_EQ(session.Initialize(), OkStatus());
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, EpochsTest, ::testing::Values(1, 4));

TEST(PrefetchRunnerSourcesTest, TheInitialiserMayRunBeforeTheRunnerStarts) {
  Epochs epochs(kSource, 3);
  RunnerSession session;
  EXPECT_EQ(session.Initialize(), OkStatus());
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values, Epochs::Records(1, 3));
}

TEST(PrefetchRunnerSourcesTest, AnEmptyEpochEndsToo) {
  Epochs epochs(kSource, 0);
  RunnerSession session;
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(session.Initialize(), OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_TRUE(values.empty());
  epochs.Resize(2);
  EXPECT_EQ(session.Initialize(), OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values, Epochs::Records(2, 2));
}

TEST(PrefetchRunnerSourcesTest, AnErrorEndsItsEpochOnly) {
  Epochs epochs(kSource, 3);
  epochs.FailNext(errors::DataLoss("bad record"));
  RunnerSession session;
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  const Status status = session.TakeAll(&values);
  EXPECT_TRUE(errors::IsDataLoss(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "{{node source}}")) << status;
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(session.Initialize(), OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values, Epochs::Records(1, 3));
}

TEST(PrefetchRunnerSourcesTest, JoinedSourcesEndWhenTheLastOneDoes) {
  Epochs source(kSource, 3);
  Epochs other(kOtherSource, 50);
  // One run initialises both sources again.
  Sources::Get()->Set(kInitializer, [&](OpKernelContext* ctx,
                                        AsyncOpKernel::DoneCallback done) {
    source.Initialize(ctx);
    other.Initialize(ctx);
    ctx->set_output(0, Tensor(int64_t{0}));
    done();
  });
  StageConfig config;
  config.join_other_source = true;
  RunnerSession session(config);
  auto runner = session.StartRunner();
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> values;
    EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
    std::vector<int64_t> expected = Epochs::Records(epoch, 3);
    for (int64_t record : Epochs::Records(epoch, 50)) {
      expected.push_back(record);
    }
    std::sort(expected.begin(), expected.end());
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, expected);
    EXPECT_EQ(session.Initialize(), OkStatus());
  }
}

TEST(PrefetchRunnerSourcesTest, AStageThatBeginsTooEarlyTriesAgain) {
  Epochs epochs(kSource, 3);
  epochs.FailNext(errors::FailedPrecondition("not initialised"));
  RunnerSession session;
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  Status status = session.TakeAll(&values);
  // Only a take that waits when the run fails reports the error.
  if (errors::IsFailedPrecondition(status)) status = session.TakeAll(&values);
  EXPECT_TRUE(errors::IsOutOfRange(status)) << status;
  EXPECT_EQ(values, Epochs::Records(0, 3));
}

TEST(PrefetchRunnerSourcesTest, AnInitialiserDoesNotWaitForARunThatWaits) {
  Epochs epochs(kSource, 3);
  Notification began, may_end;
  epochs.HoldNext(&began, &may_end);
  RunnerSession session;
  auto runner = session.StartRunner();
  began.WaitForNotification();
  EXPECT_EQ(session.Initialize(), OkStatus());
  may_end.Notify();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values, Epochs::Records(1, 3));
}

TEST(PrefetchRunnerSourcesTest, StopEndsThreadsThatWaitForAChange) {
  Epochs epochs(kSource, 3);
  RunnerSession session(WithThreads(3));
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_FALSE(runner->GetStats().running);
  runner->Stop();
  // A new runner continues with the current data.
  EXPECT_EQ(session.Initialize(), OkStatus());
  auto second = session.StartRunner();
  values.clear();
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values.size(), 3);
}

TEST(PrefetchRunnerSourcesTest, AClosingSessionEndsThreadsThatWaitForAChange) {
  Epochs epochs(kSource, 3);
  RunnerSession session(WithThreads(3));
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  session.Close();
  EXPECT_EQ(runner->GetStats().threads, 0);
}

// A buffer on a server is not in this process. The op that should open the
// buffer does something else here.
TEST(PrefetchRunnerSourcesTest, ARunnerThatDoesNotSeeItsBufferPauses) {
  constexpr int64_t kCalls = 9;
  Notification enough;
  Sources::Get()->Set(kSource, Counting([&](int64_t call) {
                        if (call == kCalls) enough.Notify();
                        return errors::OutOfRange("end of sequence");
                      }));
  RunnerSession session;
  session.options()->set_resume_op("prefetch/error_code");
  const uint64_t begin = Env::Default()->NowMicros();
  auto runner = session.StartRunner();
  enough.WaitForNotification();
  EXPECT_GE(Env::Default()->NowMicros() - begin, 100 * 1000);
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
