// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/deadline_timer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kSoonMicros = 1000;
constexpr int64_t kNeverMicros = int64_t{3600} * 1000 * 1000;

// Counts the threads that are started through it.
class ThreadCountingEnv : public EnvWrapper {
 public:
  ThreadCountingEnv() : EnvWrapper(Env::Default()) {}

  Thread* StartThread(const ThreadOptions& options, const std::string& name,
                      absl::AnyInvocable<void()> fn) override {
    ++threads;
    last_name = name;
    return EnvWrapper::StartThread(options, name, std::move(fn));
  }

  int threads = 0;
  std::string last_name;
};

// Records the reported ids, and lets a test wait for one of them.
class Reports {
 public:
  explicit Reports(uint64_t awaited) : awaited_(awaited) {}

  void Report(uint64_t id) {
    {
      mutex_lock l(mu_);
      ids_.push_back(id);
    }
    if (id == awaited_) seen_.Notify();
  }

  std::vector<uint64_t> WaitAndGet() {
    seen_.WaitForNotification();
    mutex_lock l(mu_);
    return ids_;
  }

 private:
  const uint64_t awaited_;
  mutex mu_;
  std::vector<uint64_t> ids_;
  Notification seen_;
};

TEST(DeadlineTimerTest, StartsItsThreadOnceAndOnlyWhenNeeded) {
  ThreadCountingEnv env;
  DeadlineTimer timer(&env, "stage_deadlines", [](uint64_t) {});
  EXPECT_EQ(env.threads, 0);
  timer.Remove(timer.Add(1, kNeverMicros));
  timer.Add(2, kNeverMicros);
  EXPECT_EQ(env.threads, 1);
  EXPECT_EQ(env.last_name, "stage_deadlines");
}

TEST(DeadlineTimerTest, ReportsInOrderOfDeadlinesNotOfAdditions) {
  Reports reports(/*awaited=*/3);
  Notification added;
  DeadlineTimer timer(Env::Default(), "deadlines", [&](uint64_t id) {
    reports.Report(id);
    if (id == 0) added.WaitForNotification();
  });
  // While this report lasts there is no other one. The others are so far apart that
  // their order is that of these numbers, however busy the machine is.
  timer.Add(0, 0);
  timer.Add(3, 600 * kSoonMicros);
  timer.Add(2, 300 * kSoonMicros);
  timer.Add(1, 0);
  added.Notify();
  EXPECT_EQ(reports.WaitAndGet(), (std::vector<uint64_t>{0, 1, 2, 3}));
}

TEST(DeadlineTimerTest, AnEarlierDeadlineWakesTheThread) {
  Reports reports(/*awaited=*/2);
  DeadlineTimer timer(Env::Default(), "deadlines",
                      [&](uint64_t id) { reports.Report(id); });
  timer.Add(1, kNeverMicros);
  timer.Add(2, kSoonMicros);
  EXPECT_EQ(reports.WaitAndGet(), (std::vector<uint64_t>{2}));
}

TEST(DeadlineTimerTest, ARemovedDeadlineIsNotReported) {
  Reports reports(/*awaited=*/2);
  DeadlineTimer timer(Env::Default(), "deadlines",
                      [&](uint64_t id) { reports.Report(id); });
  const DeadlineTimer::Entry removed = timer.Add(1, 1000 * kSoonMicros);
  timer.Remove(removed);
  timer.Remove(removed);
  timer.Add(2, kSoonMicros);
  EXPECT_EQ(reports.WaitAndGet(), (std::vector<uint64_t>{2}));
}

TEST(DeadlineTimerTest, ADeadlineInThePastIsReportedAtOnce) {
  Reports reports(/*awaited=*/1);
  DeadlineTimer timer(Env::Default(), "deadlines",
                      [&](uint64_t id) { reports.Report(id); });
  timer.Add(1, -kSoonMicros);
  EXPECT_EQ(reports.WaitAndGet(), (std::vector<uint64_t>{1}));
}

TEST(DeadlineTimerTest, AReportMayAddAndRemove) {
  Reports reports(/*awaited=*/3);
  std::unique_ptr<DeadlineTimer> timer;
  DeadlineTimer::Entry second{};
  timer = std::make_unique<DeadlineTimer>(Env::Default(), "deadlines",
                                          [&](uint64_t id) {
                                            reports.Report(id);
                                            if (id == 1) {
                                              timer->Remove(second);
                                              timer->Add(3, 0);
                                            }
                                          });
  second = timer->Add(2, kNeverMicros);
  timer->Add(1, kSoonMicros);
  EXPECT_EQ(reports.WaitAndGet(), (std::vector<uint64_t>{1, 3}));
}

TEST(DeadlineTimerTest, DestructionWaitsForAReportInProgress) {
  Notification report_began;
  Notification report_may_end;
  bool report_ended = false;
  auto timer = std::make_unique<DeadlineTimer>(
      Env::Default(), "deadlines", [&](uint64_t) {
        report_began.Notify();
        report_may_end.WaitForNotification();
        report_ended = true;
      });
  timer->Add(1, 0);
  report_began.WaitForNotification();
  Env::Default()->SchedClosure([&] { report_may_end.Notify(); });
  timer.reset();
  EXPECT_TRUE(report_ended);
}

TEST(DeadlineTimerTest, MayBeDestroyedInsideItsOwnReport) {
  Notification destroyed;
  std::unique_ptr<DeadlineTimer> timer;
  timer = std::make_unique<DeadlineTimer>(Env::Default(), "deadlines",
                                          [&](uint64_t) {
                                            timer.reset();
                                            destroyed.Notify();
                                          });
  timer->Add(1, kSoonMicros);
  destroyed.WaitForNotification();
}

TEST(DeadlineTimerTest, ManyThreadsAddAndRemove) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 500;
  Reports reports(/*awaited=*/kThreads * kRounds);
  DeadlineTimer timer(Env::Default(), "deadlines",
                      [&](uint64_t id) { reports.Report(id); });
  {
    thread::ThreadPool pool(Env::Default(), "adders", kThreads);
    for (int t = 0; t < kThreads; ++t) {
      pool.Schedule([&timer, t] {
        for (int i = 0; i < kRounds; ++i) {
          timer.Remove(timer.Add(t * kRounds + i, kNeverMicros + i));
        }
      });
    }
  }
  timer.Add(kThreads * kRounds, 0);
  EXPECT_EQ(reports.WaitAndGet(), (std::vector<uint64_t>{kThreads * kRounds}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
