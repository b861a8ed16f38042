// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/session_observers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow {
namespace staging {
namespace {

// The observers identify a session by its address and never dereference it.
class SessionObserversTest : public ::testing::Test {
 protected:
  Session* session() { return reinterpret_cast<Session*>(&addresses_[0]); }
  Session* other() { return reinterpret_cast<Session*>(&addresses_[1]); }

 private:
  char addresses_[2];
};

TEST_F(SessionObserversTest, NotifiesEachObserverOfTheSessionOnce) {
  int first = 0, second = 0, others = 0;
  ObserveSession(session(), [&] { ++first; });
  ObserveSession(session(), [&] { ++second; });
  const SessionObserverId id = ObserveSession(other(), [&] { ++others; });
  NotifySessionClosing(session());
  NotifySessionClosing(session());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(others, 0);
  StopObservingSession(id);
}

TEST_F(SessionObserversTest, ASessionWithoutObserversCloses) {
  NotifySessionClosing(session());
}

TEST_F(SessionObserversTest, AWithdrawnObserverIsNotNotified) {
  bool notified = false;
  const SessionObserverId id =
      ObserveSession(session(), [&] { notified = true; });
  StopObservingSession(id);
  StopObservingSession(id);
  NotifySessionClosing(session());
  EXPECT_FALSE(notified);
}

TEST_F(SessionObserversTest, AnObserverMayWithdrawItself) {
  SessionObserverId id = -1;
  id = ObserveSession(session(), [&] { StopObservingSession(id); });
  NotifySessionClosing(session());
}

TEST_F(SessionObserversTest, ObserversDoNotWaitForEachOther) {
  Notification first, second;
  ObserveSession(session(), [&] {
    first.Notify();
    second.WaitForNotification();
  });
  ObserveSession(session(), [&] {
    second.Notify();
    first.WaitForNotification();
  });
  NotifySessionClosing(session());
}

TEST_F(SessionObserversTest, ASecondClosingWaitsForTheFirst) {
  Notification began;
  Notification may_end;
  std::atomic<bool> ended{false};
  ObserveSession(session(), [&] {
    began.Notify();
    may_end.WaitForNotification();
    ended = true;
  });
  thread::ThreadPool pool(Env::Default(), "closing", 2);
  pool.Schedule([this] { NotifySessionClosing(session()); });
  began.WaitForNotification();
  pool.Schedule([&] { may_end.Notify(); });
  NotifySessionClosing(session());
  EXPECT_TRUE(ended);
}

TEST_F(SessionObserversTest, ManyThreadsObserveWithdrawAndClose) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 500;
  std::atomic<int> notified{0};
  {
    thread::ThreadPool pool(Env::Default(), "observers", kThreads);
    for (int t = 0; t < kThreads; ++t) {
      pool.Schedule([&] {
        for (int i = 0; i < kRounds; ++i) {
          ObserveSession(session(), [&] { ++notified; });
          StopObservingSession(ObserveSession(other(), [] {}));
          NotifySessionClosing(session());
        }
      });
    }
  }
  EXPECT_EQ(notified, kThreads * kRounds);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
