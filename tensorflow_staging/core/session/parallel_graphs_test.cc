// SPDX-License-Identifier: Apache-2.0
//
// Tests that in the patched direct_session.cc several runs build their graphs
// at the same time, also while the session's graph is extended.

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace staging {
namespace {

// Where the graphs that are being built wait for each other.
class MeetingPoint {
 public:
  static MeetingPoint* Get() {
    static MeetingPoint* const point = new MeetingPoint;
    return point;
  }

  // From now on, each graph waits until `count` are being built, or for some
  // seconds.
  void Await(int count) TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    awaited_ = count;
    met_ = present_ >= count;
    all_present_.notify_all();
  }

  // Returns whether a graph is waiting.
  bool AnyPresent() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    return present_ > 0;
  }

  // Returns whether all were there at the same time.
  bool HaveMet() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    return met_;
  }

  void Arrive() TF_LOCKS_EXCLUDED(mu_) {
    constexpr int64_t kMilliseconds = 5000;
    mutex_lock lock(mu_);
    ++present_;
    if (present_ >= awaited_) met_ = true;
    all_present_.notify_all();
    while (!met_ && WaitForMilliseconds(&lock, &all_present_, kMilliseconds) ==
                        kCond_MaybeNotified) {
    }
    --present_;
  }

 private:
  mutable mutex mu_;
  condition_variable all_present_;
  int awaited_ TF_GUARDED_BY(mu_) = 0;
  int present_ TF_GUARDED_BY(mu_) = 0;
  bool met_ TF_GUARDED_BY(mu_) = false;
};

// A graph with this node does not wait.
constexpr char kFree[] = "free";

class MeetingPass : public GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    for (const Node* node : (*options.graph)->op_nodes()) {
      if (node->name() == kFree) return OkStatus();
    }
    MeetingPoint::Get()->Arrive();
    return OkStatus();
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 0,
                      MeetingPass);

// Returns a graph of a constant.
GraphDef Constant(const std::string& name, int value) {
  GraphDef graph;
  EXPECT_EQ(NodeDefBuilder(name, "Const")
                .Attr("dtype", DT_INT32)
                .Attr("value", Tensor(value))
                .Finalize(graph.add_node()),
            OkStatus());
  return graph;
}

// Creates a session whose graph can be extended.
std::unique_ptr<Session> MakeSession() {
  SessionOptions options;
  options.config.mutable_experimental()->set_disable_optimize_for_static_graph(
      true);
  std::unique_ptr<Session> session(NewSession(options));
  EXPECT_EQ(session->Create(Constant("first", 0)), OkStatus());
  return session;
}

// Expects that `name` has `value`.
void ExpectValue(const std::string& name, int value, Session* session) {
  std::vector<Tensor> outputs;
  const Status ran = session->Run({}, {name}, {}, &outputs);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(outputs[0].scalar<int>()(), value);
}

// Starts a thread that expects the values of constants, each in a run for which
// the session builds a graph.
std::unique_ptr<Thread> Running(const std::vector<std::string>& names,
                                Session* session) {
  return std::unique_ptr<Thread>(
      Env::Default()->StartThread({}, "runs", [names, session] {
        for (size_t i = 0; i < names.size(); ++i) {
          ExpectValue(names[i], i, session);
        }
      }));
}

TEST(ParallelGraphsTest, TwoRunsBuildTheirGraphsAtTheSameTime) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Extend(Constant("second", 0)), OkStatus());
  MeetingPoint::Get()->Await(2);
  auto first = Running({"first"}, session.get());
  auto second = Running({"second"}, session.get());
  first.reset();
  second.reset();
  EXPECT_TRUE(MeetingPoint::Get()->HaveMet());
  MeetingPoint::Get()->Await(0);
}

TEST(ParallelGraphsTest, ARunDoesNotWaitForTheGraphOfAnother) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Extend(Constant("second", 0)), OkStatus());
  ASSERT_EQ(session->Extend(Constant(kFree, 0)), OkStatus());
  // After its first run, the session knows where the nodes of the graph are.
  ExpectValue("second", 0, session.get());
  MeetingPoint::Get()->Await(2);
  auto first = Running({"first"}, session.get());
  while (!MeetingPoint::Get()->AnyPresent()) {
    Env::Default()->SleepForMicroseconds(100);
  }
  ExpectValue(kFree, 0, session.get());
  EXPECT_TRUE(MeetingPoint::Get()->AnyPresent());
  MeetingPoint::Get()->Await(0);
}

TEST(ParallelGraphsTest, RunsSeeTheGraphThatIsExtendedMeanwhile) {
  constexpr int kNodes = 40;
  constexpr int kThreads = 4;
  const auto session = MakeSession();
  std::vector<std::string> names[kThreads];
  for (int i = 0; i < kNodes; ++i) {
    for (int thread = 0; thread < kThreads; ++thread) {
      names[thread].push_back(strings::StrCat("node_", thread, "_", i));
      ASSERT_EQ(session->Extend(Constant(names[thread].back(), i)), OkStatus());
    }
  }
  std::vector<std::unique_ptr<Thread>> threads;
  for (const auto& of_thread : names) {
    threads.push_back(Running(of_thread, session.get()));
  }
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = strings::StrCat("later_", i);
    ASSERT_EQ(session->Extend(Constant(name, i)), OkStatus());
    ExpectValue(name, i, session.get());
  }
}

TEST(ParallelGraphsTest, AFinalizedSessionBuildsNoGraph) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Finalize(), OkStatus());
  std::vector<Tensor> outputs;
  const Status ran = session->Run({}, {"first"}, {}, &outputs);
  EXPECT_TRUE(errors::IsFailedPrecondition(ran)) << ran;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
