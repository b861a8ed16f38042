// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/run_cancellation.h"

#include <atomic>
#include <thread>  // NOLINT

#include "gtest/gtest.h"
#include "tensorflow/core/framework/cancellation.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(RunCancellationTest, ACallbackSeesTheCancellation) {
  CancellationManager manager;
  EXPECT_FALSE(HasBeenCancelled(&manager));
  bool seen = false;
  manager.RegisterCallback(manager.get_cancellation_token(),
                           [&] { seen = HasBeenCancelled(&manager); });
  manager.StartCancel();
  EXPECT_TRUE(seen);
  EXPECT_TRUE(HasBeenCancelled(&manager));
}

TEST(RunCancellationTest, ARunOfAnOpenSessionIsNotCancelled) {
  CancellationManager session;
  CancellationManager run(&session);
  InheritCancellation(&session, &run);
  EXPECT_FALSE(run.IsCancelled());
  session.StartCancel();
  EXPECT_TRUE(run.IsCancelled());
}

// A manager without a parent stands for one that has forgotten the
// cancellation.
TEST(RunCancellationTest, ARunThatHasForgottenItsCancellationIsCancelled) {
  CancellationManager session;
  CancellationManager run;
  session.StartCancel();
  InheritCancellation(&session, &run);
  EXPECT_TRUE(run.IsCancelled());
}

TEST(RunCancellationTest, ARunThatBeginsDuringTheCancellationIsCancelled) {
  CancellationManager session;
  CancellationManager run;
  session.RegisterCallback(session.get_cancellation_token(),
                           [&] { InheritCancellation(&session, &run); });
  session.StartCancel();
  EXPECT_TRUE(run.IsCancelled());
}

// Without InheritCancellation, about 1 of 10,000 of these runs is never
// cancelled.
TEST(RunCancellationTest, NoRunMissesTheCancellation) {
  constexpr int kRuns = 50000;
  std::atomic<CancellationManager*> session{nullptr};
  std::thread closer([&session] {
    for (int i = 0; i < kRuns; ++i) {
      CancellationManager* closing;
      while ((closing = session.load()) == nullptr) std::this_thread::yield();
      closing->StartCancel();
      session = nullptr;
    }
  });
  int missed = 0;
  for (int i = 0; i < kRuns; ++i) {
    CancellationManager closing;
    session = &closing;
    CancellationManager run(&closing);
    InheritCancellation(&closing, &run);
    while (session.load() != nullptr) std::this_thread::yield();
    if (!run.IsCancelled()) ++missed;
  }
  closer.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
