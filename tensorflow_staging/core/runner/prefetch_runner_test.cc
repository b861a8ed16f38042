// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/prefetch_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>  // NOLINT
#include <memory>
#include <set>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/testing/runner_stage.h"

namespace tensorflow {
namespace staging {
namespace {

// What steps get from a stage until one of them fails.
struct Taken {
  std::vector<int64_t> values;
  Status end;
  PrefetchRunner::Stats stats;
};

// Runs a stage with `config` that reads `source`.
Taken TakeAll(TestSource source, const StageConfig& config = StageConfig()) {
  Sources::Get()->Set(kSource, std::move(source));
  RunnerSession session(config);
  const auto runner = session.StartRunner();
  Taken taken;
  taken.end = session.TakeAll(&taken.values);
  taken.stats = runner->GetStats();
  return taken;
}

// A source that fails with `error` from call `call` on.
TestSource FailingFrom(int64_t call, const Status& error) {
  return Counting([call, error](int64_t current) {
    return current < call ? OkStatus() : error;
  });
}

TEST(PrefetchRunnerTest, RecordsArriveInOrderBeforeTheEndOfTheData) {
  const Taken taken = TakeAll(CountingTo(100));
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, Range(100));
  EXPECT_EQ(taken.stats.name, "prefetch");
  EXPECT_EQ(taken.stats.records, 100);
  EXPECT_EQ(taken.stats.ignored, 0);
  EXPECT_FALSE(taken.stats.running);
  EXPECT_TRUE(taken.stats.orders_threads);
}

TEST(PrefetchRunnerTest, ReadsTheStatisticsOfItsBuffer) {
  Sources::Get()->Set(kSource, CountingTo(10));
  RunnerSession session;
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  BufferStats stats;
  ASSERT_EQ(runner->ReadBuffer(&stats), OkStatus());
  EXPECT_EQ(stats.put(), 10);
  EXPECT_EQ(stats.taken(), 10);
  EXPECT_EQ(stats.take_waits().calls(), 10);
  // The next step tries the source again.
  while (stats.error_code() != error::OUT_OF_RANGE) {
    ASSERT_EQ(runner->ReadBuffer(&stats), OkStatus());
  }
  runner->Stop();
  EXPECT_TRUE(errors::IsFailedPrecondition(runner->ReadBuffer(&stats)));
}

TEST(PrefetchRunnerTest, AGraphOfAnEarlierVersionHasNoStatistics) {
  Sources::Get()->Set(kSource, CountingTo(10));
  RunnerSession session;
  session.options()->clear_stats_tensor();
  auto runner = session.StartRunner();
  BufferStats stats;
  EXPECT_TRUE(errors::IsUnimplemented(runner->ReadBuffer(&stats)));
}

TEST(PrefetchRunnerTest, AnotherTensorHoldsNoStatistics) {
  Sources::Get()->Set(kSource, CountingTo(10));
  RunnerSession session;
  session.options()->set_stats_tensor(session.options()->error_code_tensor());
  auto runner = session.StartRunner();
  BufferStats stats;
  const Status status = runner->ReadBuffer(&stats);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
}

TEST(PrefetchRunnerTest, SeveralThreadsNeitherSkipNorRepeatRecords) {
  StageConfig config;
  config.num_threads = 4;
  const Taken taken = TakeAll(CountingTo(500), config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values.size(), 500);
  EXPECT_EQ(std::set<int64_t>(taken.values.begin(), taken.values.end()).size(),
            500);
}

TEST(PrefetchRunnerTest, JoinedSourcesEndWhenTheLastOneDoes) {
  Sources::Get()->Set(kOtherSource, CountingTo(50));
  StageConfig config;
  config.join_other_source = true;
  const Taken taken = TakeAll(CountingTo(3), config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values.size(), 53);
}

TEST(PrefetchRunnerTest, TheCauseArrivesAfterTheRecordsBeforeIt) {
  const Taken taken = TakeAll(FailingFrom(5, errors::DataLoss("bad record")));
  EXPECT_TRUE(errors::IsDataLoss(taken.end)) << taken.end;
  EXPECT_TRUE(absl::StrContains(taken.end.message(), "bad record"))
      << taken.end;
  EXPECT_TRUE(absl::StrContains(taken.end.message(), "{{node source}}"))
      << taken.end;
  EXPECT_EQ(taken.values, Range(5));
}

// The step that gets the error may go on, as one without a stage.
TEST(PrefetchRunnerTest, AnErrorOfOneThreadComesOnceAndTheStageGoesOn) {
  Sources::Get()->Set(kSource, Counting([](int64_t call) {
                        return call == 10 ? errors::DataLoss("once")
                                          : OkStatus();
                      }));
  StageConfig config;
  config.num_threads = 4;
  RunnerSession session(config);
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  const Status status = session.TakeAll(&values);
  EXPECT_TRUE(errors::IsDataLoss(status)) << status;
  EXPECT_GE(values.size(), 10);
  int64_t value = 0;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(session.Take(&value), OkStatus());
}

// The record that another thread got from the source before the error.
TEST(PrefetchRunnerTest, TheCauseWaitsForAnEarlierRecordOfItsSource) {
  Notification failing;
  Notification step_has_ended;
  Sources::Get()->Set(kSource, Counting([&](int64_t call) -> Status {
                        if (call > 0) {
                          failing.Notify();
                          return errors::DataLoss("cause");
                        }
                        failing.WaitForNotification();
                        // If the cause overtook the record, the step would get
                        // it now.
                        WaitForNotificationWithTimeout(&step_has_ended,
                                                       /*us=*/200 * 1000);
                        return OkStatus();
                      }));
  StageConfig config;
  config.num_threads = 2;
  RunnerSession session(config);
  session.options()->set_any_order(true);
  auto runner = session.StartRunner();
  std::vector<int64_t> values;
  const Status status = session.TakeAll(&values);
  step_has_ended.Notify();
  EXPECT_TRUE(errors::IsDataLoss(status)) << status;
  EXPECT_EQ(values, Range(1));
  EXPECT_FALSE(runner->GetStats().orders_threads);
}

TEST(PrefetchRunnerTest, AClosedExceptionIsTheEndOfTheData) {
  StageConfig config;
  config.closed = {error::DATA_LOSS};
  const Taken taken =
      TakeAll(FailingFrom(2, errors::DataLoss("truncated")), config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, Range(2));
}

TEST(PrefetchRunnerTest, AnIgnoredExceptionIsCountedAndSkipped) {
  StageConfig config;
  config.ignored = {error::DATA_LOSS};
  const Taken taken = TakeAll(Counting([](int64_t call) -> Status {
                                if (call >= 9) return errors::OutOfRange("end");
                                if (call % 3 == 1)
                                  return errors::DataLoss("bad");
                                return OkStatus();
                              }),
                              config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, (std::vector<int64_t>{0, 2, 3, 5, 6, 8}));
  EXPECT_EQ(taken.stats.records, 6);
  EXPECT_EQ(taken.stats.ignored, 3);
}

TEST(PrefetchRunnerTest, TheCauseDoesNotWaitForASourceThatBlocks) {
  Notification blocked;
  Sources::Get()->Set(kOtherSource, WaitingForCancellation(&blocked));
  StageConfig config;
  config.join_other_source = true;
  const Taken taken = TakeAll(Counting([&blocked](int64_t call) -> Status {
                                if (call < 2) return OkStatus();
                                blocked.WaitForNotification();
                                return errors::DataLoss("cause");
                              }),
                              config);
  EXPECT_TRUE(errors::IsDataLoss(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, Range(2));
}

// The bound is that of the pauses; without them the calls take milliseconds.
TEST(PrefetchRunnerTest, ASourceThatOnlyFailsDoesNotSpin) {
  Notification many;
  Sources::Get()->Set(kSource, Counting([&many](int64_t call) -> Status {
                        if (call == 150) many.Notify();
                        return errors::DataLoss("broken");
                      }));
  StageConfig config;
  config.ignored = {error::DATA_LOSS};
  RunnerSession session(config);
  const auto start = std::chrono::steady_clock::now();
  auto runner = session.StartRunner();
  many.WaitForNotification();
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(200));
}

// Nothing has stopped the runner or closed the session, so only the end of the
// stage can end the wait of the training step.
TEST(PrefetchRunnerTest, ARegionThatCancelsItselfEndsTheStage) {
  const Taken taken = TakeAll(FailingFrom(2, errors::Cancelled("by itself")));
  EXPECT_TRUE(errors::IsCancelled(taken.end)) << taken.end;
  EXPECT_TRUE(absl::StrContains(taken.end.message(), "by itself")) << taken.end;
  EXPECT_EQ(taken.values, Range(2));
}

// The runtime skips a Put with a dead input without an error.
TEST(PrefetchRunnerTest, ARunThatPutsNoRecordEndsTheStage) {
  Sources::Get()->Set(kSource, Endless());
  StageConfig config;
  config.dead_record = true;
  config.ignored = {error::INVALID_ARGUMENT};
  RunnerSession stage(config);
  const auto runner = stage.StartRunner();
  int64_t value;
  const Status status = stage.Take(&value);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "put no record")) << status;
}

// The executor replaces UNAVAILABLE with INTERNAL.
TEST(PrefetchRunnerTest, UnavailableIsRecognised) {
  const auto source = [](int64_t call) -> Status {
    if (call >= 5) return errors::OutOfRange("end");
    if (call == 2) return errors::Unavailable("for now");
    return OkStatus();
  };
  StageConfig config;
  config.ignored = {error::UNAVAILABLE};
  const Taken ignoring = TakeAll(Counting(source), config);
  EXPECT_TRUE(errors::IsOutOfRange(ignoring.end)) << ignoring.end;
  EXPECT_EQ(ignoring.values, (std::vector<int64_t>{0, 1, 3, 4}));

  // As the cause, it is INTERNAL, as in a step without the stage.
  const Taken failing = TakeAll(Counting(source));
  EXPECT_TRUE(errors::IsInternal(failing.end)) << failing.end;
  EXPECT_TRUE(absl::StrContains(failing.end.message(), "for now"))
      << failing.end;
}

TEST(PrefetchRunnerTest, FeedsTakeTheirValuesFromAnEarlierRun) {
  StageConfig config;
  config.feed = true;
  const Taken taken = TakeAll(CountingTo(20), config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, Range(20));
}

TEST(PrefetchRunnerTest, AnIgnoredExceptionOfTheFeedsSkipsTheRecord) {
  StageConfig config;
  config.feed = true;
  config.ignored = {error::DATA_LOSS};
  const Taken taken = TakeAll(Counting([](int64_t call) -> Status {
                                if (call >= 4) return errors::OutOfRange("end");
                                if (call == 1) return errors::DataLoss("bad");
                                return OkStatus();
                              }),
                              config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, (std::vector<int64_t>{0, 2, 3}));
}

TEST(PrefetchRunnerTest, TheRegionRunsWithItsRunOptions) {
  StageConfig config;
  config.run_options.set_timeout_in_ms(20);
  const Taken taken = TakeAll(WaitingForCancellation(nullptr), config);
  EXPECT_TRUE(errors::IsDeadlineExceeded(taken.end)) << taken.end;
}

TEST(PrefetchRunnerTest, ATracedRegionRuns) {
  StageConfig config;
  config.run_options.set_trace_level(RunOptions::SOFTWARE_TRACE);
  const Taken taken = TakeAll(CountingTo(3), config);
  EXPECT_TRUE(errors::IsOutOfRange(taken.end)) << taken.end;
  EXPECT_EQ(taken.values, Range(3));
}

TEST(PrefetchRunnerTest, StopKeepsTheRecordsThatWaitForRoom) {
  std::atomic<int64_t> produced{0};
  Sources::Get()->Set(kSource, Counting([&](int64_t) {
                        ++produced;
                        return OkStatus();
                      }));
  StageConfig config;
  config.num_threads = 3;
  RunnerSession session(config);
  auto runner = session.StartRunner();
  int64_t value;
  EXPECT_EQ(session.Take(&value), OkStatus());
  EXPECT_TRUE(runner->GetStats().running);
  runner->Stop();
  EXPECT_FALSE(runner->GetStats().running);
  // Takes return the records first, and then report the stop.
  std::vector<int64_t> values = {value};
  const Status status = session.TakeAll(&values);
  EXPECT_TRUE(errors::IsCancelled(status)) << status;
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, Range(produced));
}

TEST(PrefetchRunnerTest, StopEndsAWaitingTrainingStep) {
  Notification ignored_first;
  Sources::Get()->Set(kSource, Counting([&](int64_t call) {
                        if (call == 1) ignored_first.Notify();
                        return errors::DataLoss("every record is bad");
                      }));
  StageConfig config;
  config.ignored = {error::DATA_LOSS};
  RunnerSession session(config);
  auto runner = session.StartRunner();
  {
    thread::ThreadPool pool(Env::Default(), "training", 1);
    pool.Schedule([&] {
      int64_t value;
      const Status status = session.Take(&value);
      EXPECT_TRUE(errors::IsCancelled(status)) << status;
    });
    ignored_first.WaitForNotification();
    runner->Stop();
  }
  EXPECT_GE(runner->GetStats().ignored, 1);
}

TEST(PrefetchRunnerTest, StopMayBeCalledAtAnyTimeAndRepeatedly) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  auto never_started = session.MakeRunner();
  never_started->Stop();
  never_started->Stop();
  EXPECT_TRUE(errors::IsCancelled(never_started->Start()));

  auto runner = session.StartRunner();
  EXPECT_TRUE(errors::IsFailedPrecondition(runner->Start()));
  {
    thread::ThreadPool pool(Env::Default(), "stoppers", 4);
    for (int i = 0; i < 4; ++i) pool.Schedule([&] { runner->Stop(); });
  }
  runner->Stop();
  EXPECT_TRUE(errors::IsCancelled(runner->Start()));
}

TEST(PrefetchRunnerTest, StopRacesWithStart) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  for (int i = 0; i < 30; ++i) {
    auto runner = session.MakeRunner();
    {
      thread::ThreadPool pool(Env::Default(), "stopper", 1);
      pool.Schedule([&] { runner->Stop(); });
      const Status status = runner->Start();
      EXPECT_TRUE(status.ok() || errors::IsCancelled(status)) << status;
    }
    EXPECT_FALSE(runner->GetStats().running);
  }
}

TEST(PrefetchRunnerTest, DestructionStopsTheRunner) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  session.StartRunner().reset();
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsCancelled(session.TakeAll(&values)));
}

TEST(PrefetchRunnerTest, AnotherRunnerGoesOnWithTheNextRecord) {
  for (const int num_threads : {1, 4}) {
    Sources::Get()->Set(kSource, CountingTo(1000));
    StageConfig config;
    config.num_threads = num_threads;
    RunnerSession session(config);
    auto first = session.StartRunner();
    int64_t value;
    EXPECT_EQ(session.Take(&value), OkStatus());
    first->Stop();
    auto second = session.StartRunner();
    // A second Stop of the first runner must not disturb the second runner.
    first->Stop();
    first.reset();
    std::vector<int64_t> values = {value};
    EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
    if (num_threads > 1) std::sort(values.begin(), values.end());
    EXPECT_EQ(values, Range(1000));
  }
}

// A run that is still computing when the runner stops belongs to no runner any
// more. Its record is not lost either.
TEST(PrefetchRunnerTest, TheRecordOfARunThatOutlivesItsRunnerIsKept) {
  Notification began, may_end;
  auto source = Counting([&](int64_t call) {
    if (call == 0) {
      began.Notify();
      may_end.WaitForNotification();
    }
    return call < 3 ? OkStatus() : errors::OutOfRange("end of sequence");
  });
  Sources::Get()->Set(kSource, source);
  RunnerSession session;
  auto first = session.StartRunner();
  began.WaitForNotification();
  first->Stop();
  may_end.Notify();
  int64_t value;
  // CANCELLED until the run has put its record.
  while (!session.Take(&value).ok()) {
  }
  auto second = session.StartRunner();
  std::vector<int64_t> values = {value};
  EXPECT_TRUE(errors::IsOutOfRange(session.TakeAll(&values)));
  EXPECT_EQ(values, Range(3));
}

// The source does not use the buffer, so cancelling the buffer does not wake
// it.
TEST(PrefetchRunnerTest, StopDoesNotWaitForeverForASlowSource) {
  Notification began;
  Sources::Get()->Set(kSource, WaitingForCancellation(&began));
  RunnerSession session;
  auto runner = session.StartRunner();
  began.WaitForNotification();
  runner->Stop();
  EXPECT_TRUE(runner->GetStats().running);
  runner.reset();
  session.Delete();
}

TEST(PrefetchRunnerTest, AClosingSessionWakesASlowSource) {
  Notification began;
  Sources::Get()->Set(kSource, WaitingForCancellation(&began));
  RunnerSession session;
  auto runner = session.StartRunner();
  began.WaitForNotification();
  session.Close();
  EXPECT_FALSE(runner->GetStats().running);
}

TEST(PrefetchRunnerTest, AClosingSessionWakesAPutThatWaitsForRoom) {
  Sources::Get()->Set(kSource, Endless());
  StageConfig config;
  config.num_threads = 3;
  RunnerSession session(config);
  auto runner = session.StartRunner();
  int64_t value;
  EXPECT_EQ(session.Take(&value), OkStatus());
  session.Close();
  EXPECT_FALSE(runner->GetStats().running);
  runner->Stop();
}

// The session is still open and has cancelled no step, so the runner must
// cancel the buffer itself.
TEST(PrefetchRunnerTest, NotifySessionClosingAloneEndsTheRunner) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  auto runner = session.StartRunner();
  NotifySessionClosing(session.session().get());
  EXPECT_FALSE(runner->GetStats().running);
}

TEST(PrefetchRunnerTest, TheSessionMayBeDeletedFirst) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  auto started = session.StartRunner();
  auto never_started = session.MakeRunner();
  session.Delete();
  EXPECT_TRUE(errors::IsCancelled(never_started->Start()));
  EXPECT_FALSE(started->GetStats().running);
  started->Stop();
}

TEST(PrefetchRunnerTest, TheRunnerReleasesAClosedSession) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  auto runner = session.StartRunner();
  std::weak_ptr<Session> alive = session.session();
  session.Delete();
  EXPECT_TRUE(alive.expired());
}

TEST(PrefetchRunnerTest, AStoppedRunnerReleasesTheSession) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  auto runner = session.StartRunner();
  runner->Stop();
  // The references of the RunnerSession and of this expression.
  EXPECT_EQ(session.session().use_count(), 2);
}

// The deletion of the session notifies the runner, which must not wait for
// itself.
TEST(PrefetchRunnerTest, TheRunnerMayHoldTheLastReferenceToTheSession) {
  class NotifyingDeleter {
   public:
    void operator()(Session* session) {
      session->Close().IgnoreError();
      NotifySessionClosing(session);
      delete session;
    }
  };
  RunnerSession stage;
  Sources::Get()->Set(kSource, Endless());
  std::shared_ptr<Session> session(NewSession(SessionOptions()),
                                   NotifyingDeleter());
  std::shared_ptr<PrefetchRunner> runner;
  ASSERT_EQ(session->Create(stage.graph()), OkStatus());
  ASSERT_EQ(PrefetchRunner::Create(session, *stage.options(), &runner),
            OkStatus());
  ASSERT_EQ(runner->Start(), OkStatus());
  std::weak_ptr<Session> alive = session;
  session.reset();
  EXPECT_FALSE(alive.expired());
  runner->Stop();
  EXPECT_TRUE(alive.expired());
}

TEST(PrefetchRunnerTest, StartInAClosedSessionIsCancelled) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  session.Close();
  auto runner = session.MakeRunner();
  EXPECT_TRUE(errors::IsCancelled(runner->Start()));
}

TEST(PrefetchRunnerTest, StopRacesWithTheClosingOfTheSession) {
  Sources::Get()->Set(kSource, Endless());
  for (int i = 0; i < 30; ++i) {
    RunnerSession session;
    auto runner = session.StartRunner();
    {
      thread::ThreadPool pool(Env::Default(), "stopper", 1);
      pool.Schedule([&] { runner->Stop(); });
      session.Delete();
    }
    EXPECT_FALSE(runner->GetStats().running);
  }
}

// Each session ends in one of the orders in which users stop runners and close
// or delete sessions.
TEST(PrefetchRunnerTest, TwoHundredSessionsEndCleanly) {
  for (int i = 0; i < 200; ++i) {
    const bool ends_early = i % 3 == 0;
    Sources::Get()->Set(kSource, ends_early ? CountingTo(2) : Endless());
    StageConfig config;
    config.num_threads = 1 + i % 2;
    RunnerSession session(config);
    auto runner = session.StartRunner();
    if (i % 2 == 0) {
      int64_t value;
      EXPECT_EQ(session.Take(&value), OkStatus());
    }
    switch (i % 5) {
      case 0:
        runner->Stop();
        session.Delete();
        break;
      case 1:
        session.Delete();
        runner->Stop();
        break;
      case 2:
        runner.reset();
        session.Delete();
        break;
      case 3:
        session.Delete();
        runner.reset();
        break;
      case 4:
        session.Close();
        runner.reset();
        session.Delete();
        break;
    }
  }
}

TEST(PrefetchRunnerTest, StartNamesAnOpThatTheGraphLacks) {
  Sources::Get()->Set(kSource, Endless());
  RunnerSession session;
  session.options()->set_resume_op("nowhere");
  const Status status = session.MakeRunner()->Start();
  EXPECT_TRUE(errors::IsNotFound(status) || errors::IsInvalidArgument(status))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "nowhere")) << status;
}

TEST(PrefetchRunnerTest, ARunThatCannotBePreparedEndsTheStage) {
  Sources::Get()->Set(kSource, Endless());
  StageConfig config;
  config.num_threads = 2;
  // Trying again would not help.
  config.ignored = {error::NOT_FOUND, error::INVALID_ARGUMENT};
  RunnerSession session(config);
  for (std::string& op : *session.options()->mutable_fetch_ops()) {
    op = "nowhere";
  }
  auto runner = session.StartRunner();
  int64_t value;
  const Status status = session.Take(&value);
  EXPECT_TRUE(absl::StrContains(status.message(), "nowhere")) << status;
}

TEST(PrefetchRunnerTest, CreateNamesTheOptionThatIsMissing) {
  RunnerSession session;
  std::shared_ptr<PrefetchRunner> runner;
  PrefetchRunnerOptions options = *session.options();
  options.clear_cancel_op();
  Status status = PrefetchRunner::Create(session.session(), options, &runner);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(
      absl::StrContains(status.message(), "PrefetchRunnerOptions.cancel_op"))
      << status;

  options = *session.options();
  options.clear_fetch_ops();
  status = PrefetchRunner::Create(session.session(), options, &runner);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(
      absl::StrContains(status.message(), "PrefetchRunnerOptions.fetch_ops"))
      << status;
}

// Counts to `end`, and yields each number `micros` after it was asked for.
TestSource SlowCountingTo(int64_t end,
                          std::shared_ptr<std::atomic<int>> micros) {
  auto next = std::make_shared<std::atomic<int64_t>>(0);
  return [end, micros, next](OpKernelContext* ctx,
                             AsyncOpKernel::DoneCallback done) {
    Env::Default()->SchedClosureAfter(*micros, [=]() {
      const int64_t value = (*next)++;
      if (value >= end) {
        ctx->SetStatus(errors::OutOfRange("the end"));
      } else {
        ctx->set_output(0, Tensor(value));
      }
      done();
    });
  };
}

// Takes records, with a pause after each, until `condition` holds. Returns how
// many, or -1 if it does not hold for half a minute.
template <typename Condition>
int64_t TakeUntil(RunnerSession* session, std::chrono::microseconds pause,
                  Condition condition) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int64_t value = 0;
  for (int64_t taken = 0; std::chrono::steady_clock::now() < deadline;
       ++taken) {
    if (condition()) return taken;
    TF_CHECK_OK(session->Take(&value));
    std::this_thread::sleep_for(pause);
  }
  return -1;
}

// A stage whose runner has chosen two producers, and then one.
class TunedThreadsTest : public ::testing::Test {
 protected:
  // More than TakeUntil takes in its time.
  static constexpr int64_t kRecords = 20000;

  void SetUp() override {
    auto micros = std::make_shared<std::atomic<int>>(5000);
    Sources::Get()->Set(kSource, SlowCountingTo(kRecords, micros));
    session_.options()->set_tune_threads(true);
    // The source does not say when it has been read.
    session_.options()->set_any_order(true);
    runner_ = session_.StartRunner();
    EXPECT_EQ(Threads(), 1);
    // The step waits, and a second producer helps.
    const int64_t waiting = TakeUntil(&session_, std::chrono::microseconds(0),
                                      [this]() { return Threads() > 1; });
    ASSERT_GE(waiting, 0);
    // Records come at once, and producers wait for room.
    *micros = 0;
    const int64_t fast = TakeUntil(&session_, std::chrono::milliseconds(2),
                                   [this]() { return Threads() == 1; });
    ASSERT_GE(fast, 0);
    taken_ = waiting + fast;
  }

  int Threads() const { return runner_->GetStats().threads; }

  RunnerSession session_;
  std::shared_ptr<PrefetchRunner> runner_;
  int64_t taken_ = 0;
};

TEST_F(TunedThreadsTest, TheIdleProducerLeavesAtTheEndOfTheData) {
  std::vector<int64_t> values;
  EXPECT_TRUE(errors::IsOutOfRange(session_.TakeAll(&values)));
  EXPECT_EQ(taken_ + static_cast<int64_t>(values.size()), kRecords);
  EXPECT_FALSE(runner_->GetStats().running);
}

TEST_F(TunedThreadsTest, StopEndsTheIdleProducer) {
  runner_->Stop();
  EXPECT_FALSE(runner_->GetStats().running);
}

TEST(TunedThreadsOptionsTest, OneOpIsAllowed) {
  StageConfig config;
  config.num_threads = 2;
  RunnerSession session(config);
  session.options()->set_tune_threads(true);
  std::shared_ptr<PrefetchRunner> runner;
  const Status status =
      PrefetchRunner::Create(session.session(), *session.options(), &runner);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(
      absl::StrContains(status.message(), "has 2 entries; with tune_threads"))
      << status;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
