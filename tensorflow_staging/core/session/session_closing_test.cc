// SPDX-License-Identifier: Apache-2.0
//
// When a session tells its observers that it is closing: what the patch of
// direct_session.cc connects.

#include <memory>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/session/session_observers.h"

namespace tensorflow {
namespace staging {
namespace {

// A session whose operation "wait" waits for an element that never comes.
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

TEST(SessionClosingTest, CloseTellsTheObserver) {
  const auto session = MakeSession();
  bool told = false;
  ObserveSession(session.get(), [&] { told = true; });
  ASSERT_EQ(session->Close(), OkStatus());
  EXPECT_TRUE(told);
}

TEST(SessionClosingTest, DeletingAnOpenSessionTellsTheObserver) {
  auto session = MakeSession();
  bool told = false;
  ObserveSession(session.get(), [&] { told = true; });
  session.reset();
  EXPECT_TRUE(told);
}

TEST(SessionClosingTest, DeletingTellsWhoObservesAfterAClose) {
  auto session = MakeSession();
  ASSERT_EQ(session->Close(), OkStatus());
  bool told = false;
  ObserveSession(session.get(), [&] { told = true; });
  session.reset();
  EXPECT_TRUE(told);
}

TEST(SessionClosingTest, ClosingAgainTellsWhoObservesAfterAClose) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Close(), OkStatus());
  bool told = false;
  ObserveSession(session.get(), [&] { told = true; });
  ASSERT_EQ(session->Close(), OkStatus());
  EXPECT_TRUE(told);
}

// The observer joins a thread that waits in a step: the step has to be
// cancelled by then, and the session must not hold a lock that it takes.
TEST(SessionClosingTest, StepsAreCancelledBeforeTheObserverIsTold) {
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
