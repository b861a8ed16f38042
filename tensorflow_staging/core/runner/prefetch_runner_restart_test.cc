// SPDX-License-Identifier: Apache-2.0
//
// Tests runners of stages whose source is initialised again.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/testing/runner_stage.h"

namespace tensorflow {
namespace staging {
namespace {

// A source that yields `size` records after each initialisation. After g
// initialisations, its records are 1000 * g, 1000 * g + 1 ...
class Epochs {
 public:
  Epochs(const std::string& source, int64_t size) : size_(size) {
    Sources::Get()->Set(
        source, [this](OpKernelContext* ctx, AsyncOpKernel::DoneCallback done) {
          Yield(ctx);
          done();
        });
    Sources::Get()->Set(kInitializer, [this](OpKernelContext* ctx,
                                             AsyncOpKernel::DoneCallback done) {
      Initialize();
      ctx->set_output(0, Tensor(int64_t{0}));
      done();
    });
  }

  void Initialize() {
    mutex_lock l(mu_);
    ++generation_;
    next_ = 0;
  }

  // Makes the next call of the source fail with `status`.
  void FailNext(const Status& status) {
    mutex_lock l(mu_);
    failure_ = status;
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
  void Yield(OpKernelContext* ctx) {
    mutex_lock l(mu_);
    if (!failure_.ok()) {
      ctx->SetStatus(failure_);
      failure_ = OkStatus();
    } else if (next_ >= size_) {
      ctx->SetStatus(errors::OutOfRange("end of sequence"));
    } else {
      ctx->set_output(0, Tensor(1000 * generation_ + next_++));
    }
  }

  mutex mu_;
  int64_t size_ TF_GUARDED_BY(mu_);
  int64_t generation_ TF_GUARDED_BY(mu_) = 0;
  int64_t next_ TF_GUARDED_BY(mu_) = 0;
  Status failure_ TF_GUARDED_BY(mu_);
};

constexpr int64_t kEndless = 1000000;

StageConfig Restartable(int num_threads = 1) {
  StageConfig config;
  config.num_threads = num_threads;
  config.begin_and_restart = true;
  return config;
}

// A session with a restartable stage.
class RestartableSession : public StageSession {
 public:
  explicit RestartableSession(const StageConfig& config = Restartable())
      : StageSession(config) {
    options()->set_restartable(true);
  }
};

class EpochsTest : public ::testing::TestWithParam<int> {};

TEST_P(EpochsTest, EachEpochIsCompleteAndEndsWithOutOfRange) {
  constexpr int64_t kSize = 40;
  Epochs epochs(kSource, kSize);
  RestartableSession session(Restartable(GetParam()));
  auto runner = session.StartRunner();
  for (int64_t epoch = 0; epoch < 25; ++epoch) {
    std::vector<int64_t> values;
    const Status status = session.TakeAll(&values);
    EXPECT_TRUE(errors::IsOutOfRange(status)) << status;
    std::sort(values.begin(), values.end());
    ASSERT_EQ(values, Epochs::Records(epoch, kSize));
    ASSERT_EQ(session.Initialize(), OkStatus());
  }
  EXPECT_TRUE(runner->GetStats().running);
}

TEST_P(EpochsTest, AnInitialisationInTheMiddleOfTheDataDiscardsTheRest) {
  Epochs epochs(kSource, kEndless);
  RestartableSession session(Restartable(GetParam()));
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

TEST(RestartableRunnerTest, TheInitialiserMayRunBeforeTheRunnerStarts) {
  Epochs epochs(kSource, 3);
  RestartableSession session;
  EXPECT_EQ(session.Initialize(), OkStatus());
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values, Epochs::Records(1, 3));
}

TEST(RestartableRunnerTest, AnEmptyEpochEndsToo) {
  Epochs epochs(kSource, 0);
  RestartableSession session;
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

TEST(RestartableRunnerTest, AnErrorEndsItsEpochOnly) {
  Epochs epochs(kSource, 3);
  epochs.FailNext(errors::DataLoss("bad record"));
  RestartableSession session;
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

TEST(RestartableRunnerTest, JoinedSourcesEndWhenTheLastOneDoes) {
  Epochs source(kSource, 3);
  Epochs other(kOtherSource, 50);
  // One run initialises both sources again.
  Sources::Get()->Set(kInitializer, [&](OpKernelContext* ctx,
                                        AsyncOpKernel::DoneCallback done) {
    source.Initialize();
    other.Initialize();
    ctx->set_output(0, Tensor(int64_t{0}));
    done();
  });
  StageConfig config = Restartable();
  config.join_other_source = true;
  RestartableSession session(config);
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

TEST(RestartableRunnerTest, StopEndsThreadsThatWaitForARestart) {
  Epochs epochs(kSource, 3);
  RestartableSession session(Restartable(3));
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_TRUE(runner->GetStats().running);
  runner->Stop();
  EXPECT_FALSE(runner->GetStats().running);
  // A new runner continues with the current data.
  EXPECT_EQ(session.Initialize(), OkStatus());
  auto second = session.StartRunner();
  values.clear();
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values.size(), 3);
}

TEST(RestartableRunnerTest, AClosingSessionEndsThreadsThatWaitForARestart) {
  Epochs epochs(kSource, 3);
  RestartableSession session(Restartable(3));
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  session.Close();
  EXPECT_FALSE(runner->GetStats().running);
}

TEST(RestartableRunnerTest, AnInitialiserThatWaitsForSlowInputCanBeCancelled) {
  Epochs epochs(kSource, 3);
  Notification began;
  Sources::Get()->Set(kSource, WaitingForCancellation(&began));
  RestartableSession session;
  auto runner = session.StartRunner();
  began.WaitForNotification();
  const Status status = session.Initialize(/*timeout_millis=*/20);
  EXPECT_TRUE(errors::IsDeadlineExceeded(status)) << status;
  session.Close();
}

// The options say that the stage is restartable, but the graph lacks the op in
// which the threads wait for a restart.
TEST(RestartableRunnerTest, ThreadsDoNotSpinWithoutABegin) {
  constexpr int64_t kCalls = 9;
  Notification enough;
  Sources::Get()->Set(kSource, Counting([&](int64_t call) {
                        if (call == kCalls) enough.Notify();
                        return errors::OutOfRange("end of sequence");
                      }));
  RestartableSession session((StageConfig()));
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
