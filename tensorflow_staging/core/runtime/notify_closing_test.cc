// SPDX-License-Identifier: Apache-2.0
//
// Tests that the patched direct_session.cc notifies the observers of a session
// when the session closes.

#include <memory>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/runtime/session_observers.h"

namespace tensorflow {
namespace staging {
namespace {

// Creates a session whose operation "wait" waits for an element that never
// arrives.
std::unique_ptr<Session> MakeSession() {
  GraphDef graph;
  EXPECT_EQ(NodeDefBuilder("queue", "FIFOQueueV2")
                .Attr("component_types", DataTypeVector{DT_INT32})
                .Finalize(graph.add_node()),
            OkStatus());
  EXPECT_EQ(NodeDefBuilder("wait", "QueueDequeueV2")
                .Attr("component_types", DataTypeVector{DT_INT32})
                .Input("queue", 0, DT_RESOURCE)
                .Finalize(graph.add_node()),
            OkStatus());
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  EXPECT_EQ(session->Create(graph), OkStatus());
  return session;
}

TEST(SessionClosingTest, CloseNotifiesTheObserver) {
  const auto session = MakeSession();
  bool notified = false;
  ObserveSession(session.get(), [&] { notified = true; });
  ASSERT_EQ(session->Close(), OkStatus());
  EXPECT_TRUE(notified);
}

TEST(SessionClosingTest, DeletingAnOpenSessionNotifiesTheObserver) {
  auto session = MakeSession();
  bool notified = false;
  ObserveSession(session.get(), [&] { notified = true; });
  session.reset();
  EXPECT_TRUE(notified);
}

TEST(SessionClosingTest, DeletionNotifiesAnObserverAddedAfterClose) {
  auto session = MakeSession();
  ASSERT_EQ(session->Close(), OkStatus());
  bool notified = false;
  ObserveSession(session.get(), [&] { notified = true; });
  session.reset();
  EXPECT_TRUE(notified);
}

TEST(SessionClosingTest, ASecondCloseNotifiesAnObserverAddedAfterTheFirst) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Close(), OkStatus());
  bool notified = false;
  ObserveSession(session.get(), [&] { notified = true; });
  ASSERT_EQ(session->Close(), OkStatus());
  EXPECT_TRUE(notified);
}

// The observer joins a thread that waits in a step. The session must therefore
// cancel the step before it calls the observer, and must not hold a lock that
// the step takes.
TEST(SessionClosingTest, StepsAreCancelledBeforeTheObserverIsNotified) {
  const auto session = MakeSession();
  Status ended;
  std::unique_ptr<Thread> thread(Env::Default()->StartThread(
      ThreadOptions(), "waits_in_a_step",
      [&] { ended = session->Run({}, {}, {"wait"}, nullptr); }));
  ObserveSession(session.get(), [&] { thread.reset(); });
  ASSERT_EQ(session->Close(), OkStatus());
  EXPECT_TRUE(errors::IsCancelled(ended)) << ended;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
