// SPDX-License-Identifier: Apache-2.0
//
// Tests that --config=tsan finds data races, in the overlay and in tests, and
// that it knows what synchronizes TensorFlow's threads.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>  // NOLINT
#include <cstdlib>
#include <memory>
#include <thread>  // NOLINT

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/compiler/xla/stream_executor/host/host_stream.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/buffer/wait_times.h"

namespace tensorflow {
namespace staging {
namespace {

// The exit status of a process that had a report.
constexpr int kReported = 66;

// Calls `first` and then `second`, in two threads. The order is one that
// ThreadSanitizer does not know of.
template <typename First, typename Second>
void InTwoThreads(First first, Second second) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    first();
    done.store(true, std::memory_order_relaxed);
  });
  while (!done.load(std::memory_order_relaxed)) std::this_thread::yield();
  second();
  other.join();
}

class ThreadSanitizerTest : public ::testing::Test {
 protected:
  // Other threads of the process do not survive a fork.
  ThreadSanitizerTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // What one thread writes and another one reads, kept apart by what a test is
  // about. A mistake is a report, which fails the process.
  int value_ = 0;
};

TEST_F(ThreadSanitizerTest, FindsARace) {
  EXPECT_EXIT(
      {
        InTwoThreads([&] { ++value_; }, [&] { ++value_; });
        std::exit(0);
      },
      ::testing::ExitedWithCode(kReported), "data race");
}

TEST_F(ThreadSanitizerTest, FindsARaceInTheOverlay) {
  EXPECT_EXIT(
      {
        WaitTimes times;
        InTwoThreads([&] { times.Add(1); }, [&] { times.Add(1); });
        std::exit(0);
      },
      ::testing::ExitedWithCode(kReported), "data race.*WaitTimes::Add");
}

// A lock that only one of the two threads holds, or both share, keeps nothing
// apart.
TEST_F(ThreadSanitizerTest, FindsARaceBesideAMutex) {
  mutex mu;
  EXPECT_EXIT(
      {
        InTwoThreads(
            [&] {
              tf_shared_lock l(mu);
              ++value_;
            },
            [&] {
              tf_shared_lock l(mu);
              ++value_;
            });
        std::exit(0);
      },
      ::testing::ExitedWithCode(kReported), "data race");
}

TEST_F(ThreadSanitizerTest, FindsAnInversionOfTheOrderOfLocks) {
  mutex a, b;
  EXPECT_EXIT(
      {
        InTwoThreads(
            [&] {
              mutex_lock l(a);
              mutex_lock m(b);
            },
            [&] {
              mutex_lock l(b);
              mutex_lock m(a);
            });
        std::exit(0);
      },
      ::testing::ExitedWithCode(kReported), "lock-order-inversion");
}

TEST_F(ThreadSanitizerTest, KnowsMutexes) {
  mutex mu;
  InTwoThreads(
      [&] {
        mutex_lock l(mu);
        ++value_;
      },
      [&] {
        {
          tf_shared_lock l(mu);
          EXPECT_EQ(value_, 1);
        }
        mutex_lock l(mu, std::try_to_lock);
        ASSERT_TRUE(l);
        ++value_;
      });
}

TEST_F(ThreadSanitizerTest, KnowsWaits) {
  for (const bool timed : {false, true}) {
    mutex mu;
    condition_variable changed;
    bool written = false;
    bool read = false;
    std::thread reader([&] {
      mutex_lock l(mu);
      while (!written) {
        if (timed) {
          changed.wait_for(l, std::chrono::seconds(1));
        } else {
          changed.wait(l);
        }
      }
      EXPECT_EQ(value_, 1);
      value_ = 0;
      read = true;
      changed.notify_all();
    });
    {
      mutex_lock l(mu);
      value_ = 1;
      written = true;
      changed.notify_all();
      while (!read) changed.wait(l);
      EXPECT_EQ(value_, 0);
    }
    reader.join();
  }
}

TEST_F(ThreadSanitizerTest, KnowsMutexesOfAbseil) {
  absl::Mutex mu;
  InTwoThreads(
      [&] {
        absl::MutexLock l(&mu);
        ++value_;
      },
      [&] {
        absl::ReaderMutexLock l(&mu);
        EXPECT_EQ(value_, 1);
      });
}

TEST_F(ThreadSanitizerTest, KnowsNotifications) {
  Notification notification;
  absl::Notification untimed, timed, polled;
  int values[4] = {};
  std::thread writer([&] {
    values[0] = 1;
    notification.Notify();
    values[1] = 1;
    untimed.Notify();
    values[2] = 1;
    timed.Notify();
    values[3] = 1;
    polled.Notify();
  });
  notification.WaitForNotification();
  EXPECT_EQ(values[0], 1);
  untimed.WaitForNotification();
  EXPECT_EQ(values[1], 1);
  EXPECT_TRUE(timed.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(values[2], 1);
  while (!polled.HasBeenNotified()) std::this_thread::yield();
  EXPECT_EQ(values[3], 1);
  writer.join();
}

TEST_F(ThreadSanitizerTest, KnowsThreadPools) {
  std::atomic<bool> done{false};
  thread::ThreadPool pool(Env::Default(), "test", 2);
  value_ = 1;
  pool.Schedule([&] {
    EXPECT_EQ(value_, 1);
    done.store(true, std::memory_order_release);
  });
  while (!done.load(std::memory_order_acquire)) std::this_thread::yield();
  done = false;
  value_ = 2;
  pool.ScheduleWithHint(
      [&] {
        EXPECT_EQ(value_, 2);
        done.store(true, std::memory_order_release);
      },
      0, 1);
  while (!done.load(std::memory_order_acquire)) std::this_thread::yield();
}

TEST_F(ThreadSanitizerTest, KnowsTasksOfStreams) {
  stream_executor::host::HostStream stream(/*stack_size_in_bytes=*/0);
  value_ = 1;
  stream.EnqueueTask([&] {
    EXPECT_EQ(value_, 1);
    value_ = 2;
  });
  stream.EnqueueTaskWithStatus([&] {
    EXPECT_EQ(value_, 2);
    value_ = 3;
    return OkStatus();
  });
  EXPECT_EQ(stream.BlockUntilDone(), OkStatus());
  EXPECT_EQ(value_, 3);
}

TEST_F(ThreadSanitizerTest, KnowsClosuresOfTheEnvironment) {
  Notification done;
  value_ = 1;
  Env::Default()->SchedClosure([&] {
    EXPECT_EQ(value_, 1);
    value_ = 2;
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(value_, 2);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
