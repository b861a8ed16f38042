// SPDX-License-Identifier: Apache-2.0
//
// Tests that in the patched direct_session.cc several runs build their graphs
// at the same time, also while the session's graph is extended.

#include <atomic>
#include <functional>
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

// Where graphs that are being built wait while it is closed.
class Gate {
 public:
  static Gate* Get() {
    static Gate* const gate = new Gate;
    return gate;
  }

  void Close() TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    closed_ = true;
  }

  void Open() TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    closed_ = false;
    opened_.notify_all();
  }

  // Returns how many graphs are waiting.
  int waiting() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    return waiting_;
  }

  void Pass() TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock lock(mu_);
    ++waiting_;
    while (closed_) opened_.wait(lock);
    --waiting_;
  }

 private:
  mutable mutex mu_;
  condition_variable opened_;
  bool closed_ TF_GUARDED_BY(mu_) = false;
  int waiting_ TF_GUARDED_BY(mu_) = 0;
};

// A graph with this node does not wait at the gate.
constexpr char kFree[] = "free";

class GatePass : public GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    for (const Node* node : (*options.graph)->op_nodes()) {
      if (node->name() == kFree) return OkStatus();
    }
    Gate::Get()->Pass();
    return OkStatus();
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 0,
                      GatePass);

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

// Returns whether `condition` holds before other sessions have built that many
// graphs. On a machine of any speed that is long enough for what must wait for
// nothing.
bool Happens(const std::function<bool()>& condition) {
  constexpr int kGraphs = 200;
  for (int i = 0; i < kGraphs && !condition(); ++i) {
    const auto session = MakeSession();
    EXPECT_EQ(session->Extend(Constant(kFree, 0)), OkStatus());
    ExpectValue(kFree, 0, session.get());
  }
  return condition();
}

TEST(ParallelGraphsTest, TwoRunsBuildTheirGraphsAtTheSameTime) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Extend(Constant("second", 0)), OkStatus());
  Gate::Get()->Close();
  auto first = Running({"first"}, session.get());
  auto second = Running({"second"}, session.get());
  EXPECT_TRUE(Happens([] { return Gate::Get()->waiting() == 2; }));
  Gate::Get()->Open();
}

TEST(ParallelGraphsTest, ARunDoesNotWaitForTheGraphOfAnother) {
  const auto session = MakeSession();
  ASSERT_EQ(session->Extend(Constant("second", 0)), OkStatus());
  ASSERT_EQ(session->Extend(Constant(kFree, 0)), OkStatus());
  // After its first run, the session knows where the nodes of the graph are.
  ExpectValue("second", 0, session.get());
  Gate::Get()->Close();
  auto first = Running({"first"}, session.get());
  EXPECT_TRUE(Happens([] { return Gate::Get()->waiting() == 1; }));
  std::atomic<bool> has_run = false;
  std::unique_ptr<Thread> other(Env::Default()->StartThread({}, "other", [&] {
    ExpectValue(kFree, 0, session.get());
    has_run = true;
  }));
  EXPECT_TRUE(Happens([&] { return has_run.load(); }));
  Gate::Get()->Open();
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
