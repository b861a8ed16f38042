// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/region_threads.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace staging {
namespace {

std::shared_ptr<RegionThreads> ThreadsOf(int threads) {
  return RegionThreads::Create(/*producers=*/threads);
}

void AwaitThreads(const RegionThreads& threads, int count) {
  while (threads.NumThreads() != count) std::this_thread::yield();
}

// A closure that waits for `release`. Must outlive the closure.
struct Blocked {
  Notification begun;
  Notification release;

  std::function<void()> Closure() {
    return [this]() {
      begun.Notify();
      release.WaitForNotification();
    };
  }
};

TEST(RegionThreadsTest, RunsAClosureInAnotherThread) {
  const auto threads = ThreadsOf(1);
  EXPECT_EQ(threads->NumThreads(), 0);
  Notification done;
  std::thread::id id;
  threads->Schedule([&]() {
    id = std::this_thread::get_id();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_NE(id, std::this_thread::get_id());
  EXPECT_EQ(threads->NumThreads(), 1);
  threads->Retire();
}

TEST(RegionThreadsTest, HasAtMostTheAllowedThreads) {
  const auto threads = ThreadsOf(2);
  Blocked first, second;
  std::atomic<bool> third{false};
  Notification third_done;
  threads->Schedule(first.Closure());
  threads->Schedule(second.Closure());
  first.begun.WaitForNotification();
  second.begun.WaitForNotification();
  threads->Schedule([&]() {
    third = true;
    third_done.Notify();
  });
  EXPECT_EQ(threads->NumThreads(), 2);
  EXPECT_FALSE(third);
  first.release.Notify();
  third_done.WaitForNotification();
  second.release.Notify();
  threads->Retire();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, ARunnerAllowsAsManyThreadsAsThePool) {
  const thread::ThreadPool one(Env::Default(), "one", 1);
  const thread::ThreadPool three(Env::Default(), "three", 3);
  const auto threads = ThreadsOf(1);
  const auto runner = threads->RunnerInsteadOf(three);
  threads->RunnerInsteadOf(one);
  BlockingCounter together(4);
  for (int i = 0; i < 4; ++i) {
    runner([&]() {
      together.DecrementCount();
      together.Wait();
    });
  }
  together.Wait();
  threads->Retire();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, AnotherProducerHasAnotherThread) {
  const auto threads = ThreadsOf(1);
  Blocked first, second;
  threads->Schedule(first.Closure());
  first.begun.WaitForNotification();
  threads->AddProducer();
  threads->Schedule(second.Closure());
  second.begun.WaitForNotification();
  EXPECT_EQ(threads->NumThreads(), 2);
  first.release.Notify();
  second.release.Notify();
  threads->Retire();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, TheLastThreadToWaitIsCalled) {
  const auto threads = ThreadsOf(2);
  Blocked first, second;
  std::thread::id last_to_wait;
  threads->Schedule(first.Closure());
  first.begun.WaitForNotification();
  threads->Schedule([&]() {
    last_to_wait = std::this_thread::get_id();
    second.Closure()();
  });
  second.begun.WaitForNotification();
  for (Blocked* closure : {&first, &second}) {
    const int idle = threads->NumIdleThreads();
    closure->release.Notify();
    while (threads->NumIdleThreads() == idle) std::this_thread::yield();
  }
  for (int i = 0; i < 3; ++i) {
    Notification done;
    std::thread::id called;
    threads->Schedule([&]() {
      called = std::this_thread::get_id();
      done.Notify();
    });
    done.WaitForNotification();
    EXPECT_EQ(called, last_to_wait);
    while (threads->NumIdleThreads() < 2) std::this_thread::yield();
  }
  threads->Retire();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, ARunnerMayBeUsedAfterItsThreadsHaveRetired) {
  const thread::ThreadPool pool(Env::Default(), "pool", 1);
  auto threads = ThreadsOf(1);
  const auto runner = threads->RunnerInsteadOf(pool);
  threads->Retire();
  threads.reset();
  Notification done;
  runner([&]() { done.Notify(); });
  done.WaitForNotification();
}

// The idle thread is called for the first closure. The second must not count on
// the same thread.
TEST(RegionThreadsTest, EachClosureGetsAThreadOfItsOwn) {
  for (int turn = 0; turn < 200; ++turn) {
    const auto threads = ThreadsOf(2);
    Notification warm;
    threads->Schedule([&]() { warm.Notify(); });
    warm.WaitForNotification();
    Blocked first, second;
    threads->Schedule(first.Closure());
    threads->Schedule(second.Closure());
    first.begun.WaitForNotification();
    second.begun.WaitForNotification();
    first.release.Notify();
    second.release.Notify();
    threads->Retire();
    AwaitThreads(*threads, 0);
  }
}

TEST(RegionThreadsTest, AClosureMaySchedule) {
  const auto threads = ThreadsOf(1);
  Notification done;
  int left = 1000;
  std::function<void()> next = [&]() {
    if (--left == 0) {
      done.Notify();
    } else {
      threads->Schedule(next);
    }
  };
  threads->Schedule(next);
  done.WaitForNotification();
  EXPECT_EQ(threads->NumThreads(), 1);
  threads->Retire();
}

TEST(RegionThreadsTest, RetireEndsTheIdleThreads) {
  const auto threads = ThreadsOf(4);
  BlockingCounter all(4);
  for (int i = 0; i < 4; ++i) {
    threads->Schedule([&]() {
      all.DecrementCount();
      all.Wait();
    });
  }
  all.Wait();
  threads->Retire();
  // A thread may still be leaving its closure.
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, RetireDoesNotWaitForABusyThread) {
  const auto threads = ThreadsOf(2);
  Blocked blocked;
  Notification idle;
  threads->Schedule(blocked.Closure());
  blocked.begun.WaitForNotification();
  threads->Schedule([&]() { idle.Notify(); });
  idle.WaitForNotification();
  threads->Retire();
  blocked.release.Notify();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, RetireLetsWaitingClosuresRun) {
  const auto threads = ThreadsOf(1);
  Blocked blocked;
  Notification done;
  threads->Schedule(blocked.Closure());
  threads->Schedule([&]() { done.Notify(); });
  blocked.begun.WaitForNotification();
  threads->Retire();
  blocked.release.Notify();
  done.WaitForNotification();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, RunsAClosureAfterRetire) {
  const auto threads = ThreadsOf(1);
  threads->Retire();
  Notification done;
  threads->Schedule([&]() { done.Notify(); });
  done.WaitForNotification();
  AwaitThreads(*threads, 0);
}

TEST(RegionThreadsTest, AClosureMayOwnTheLastReference) {
  auto threads = ThreadsOf(1);
  const std::weak_ptr<RegionThreads> alive = threads;
  Notification released;
  RegionThreads* const raw = threads.get();
  raw->Schedule([&released, threads]() { released.WaitForNotification(); });
  threads->Retire();
  threads.reset();
  released.Notify();
  while (!alive.expired()) std::this_thread::yield();
}

TEST(RegionThreadsTest, RunsEachClosureOnce) {
  const auto threads = ThreadsOf(3);
  constexpr int kCallers = 4;
  constexpr int kClosures = 5000;
  std::vector<std::atomic<int>> runs(kCallers * kClosures);
  BlockingCounter all(kCallers * kClosures);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller]() {
      for (int i = 0; i < kClosures; ++i) {
        threads->Schedule([&, index = caller * kClosures + i]() {
          ++runs[index];
          all.DecrementCount();
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  all.Wait();
  threads->Retire();
  for (const auto& count : runs) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
