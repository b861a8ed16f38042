// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/testing/stage_session.h"

namespace tensorflow {
namespace staging {
namespace {

// A session over two restartable stages of capacity 1, "prefetch" and "other",
// and two nodes that fail. "fail_run" runs after TensorBufferBegin of
// "prefetch" and before "failed_put"; "fail_restart" runs after
// TensorBufferRestart of "prefetch".
class RestartSession : public StageSession {
 public:
  explicit RestartSession(int inter_op_threads = 4)
      : StageSession(/*capacity=*/1, inter_op_threads, /*restartable=*/true,
                     Graph()) {}

  // Runs nodes of one or both stages in one run of the session.
  Status RunStep(const std::vector<std::string>& targets) {
    return session()->Run({{"record:0", Tensor(int64_t{7})}}, {}, targets,
                          nullptr);
  }

 private:
  static GraphDef Graph() {
    GraphDef graph;
    StageTestGraph other;
    other.name = "other";
    other.restartable = true;
    other.AddTo(&graph, "record");
    StageTestGraph::Add(StageTestGraph::Const("false", Tensor(false)), &graph);
    AddFailure("fail_run", "prefetch/TensorBufferBegin", &graph);
    StageTestGraph::Add(NodeDefBuilder("failed_put", "TensorBufferPut")
                            .Attr("shared_name", "prefetch")
                            .Attr("container", StageTestGraph::kContainer)
                            .Attr("capacity", 1)
                            .Input(std::vector<NodeDefBuilder::NodeOut>{
                                {"record", 0, DT_INT64}})
                            .ControlInput("fail_run"),
                        &graph);
    AddFailure("fail_restart", "prefetch/TensorBufferRestart", &graph);
    return graph;
  }

  static void AddFailure(const std::string& name, const std::string& after,
                         GraphDef* graph) {
    StageTestGraph::Add(
        NodeDefBuilder(name, "Assert")
            .Input("false", 0, DT_BOOL)
            .Input(std::vector<NodeDefBuilder::NodeOut>{{"false", 0, DT_BOOL}})
            .ControlInput(after),
        graph);
  }
};

class RestartKernelsTest : public ::testing::TestWithParam<int> {
 protected:
  RestartSession session_{/*inter_op_threads=*/GetParam()};
};

INSTANTIATE_TEST_SUITE_P(InterOpThreads, RestartKernelsTest,
                         ::testing::Values(4, 1, -1));

TEST_P(RestartKernelsTest, ARestartEndsTheRunThatWaitsForRoom) {
  EXPECT_EQ(session_.Put(1), OkStatus());
  InThread put([&] { EXPECT_EQ(session_.Put(2), OkStatus()); });
  session_.AwaitWaiting("1 puts and 0 takes");
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), "1 runs active"));
  EXPECT_EQ(session_.Run("TensorBufferRestart"), OkStatus());
  EXPECT_EQ(session_.Size(), 0);
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), "2 discarded"));
  EXPECT_EQ(session_.Put(3), OkStatus());
  EXPECT_EQ(session_.Take(), 3);
}

TEST_P(RestartKernelsTest, ARunEndsWithItsStepEvenIfTheStepFails) {
  EXPECT_EQ(session_.Put(1), OkStatus());
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), "0 runs active"));
  EXPECT_TRUE(errors::IsInvalidArgument(session_.RunStep({"failed_put"})));
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), "0 runs active"));
  EXPECT_EQ(session_.Run("TensorBufferRestart"), OkStatus());
}

TEST_P(RestartKernelsTest, OneStepMayRunTwoStages) {
  EXPECT_EQ(session_.RunStep({"other/TensorBufferPut"}), OkStatus());
  {
    // This run waits for room in the other stage.
    InThread both([&] {
      EXPECT_EQ(session_.RunStep(
                    {"prefetch/TensorBufferPut", "other/TensorBufferPut"}),
                OkStatus());
    });
    session_.Await("1 put, ");
    EXPECT_TRUE(absl::StrContains(session_.Buffer(), "1 runs active"));
    EXPECT_EQ(session_.RunStep({"other/TensorBufferRestart"}), OkStatus());
  }
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), "0 runs active"));
  EXPECT_EQ(session_.Take(), 7);
}

TEST_P(RestartKernelsTest, ARestartLastsUntilItsStepEnds) {
  ASSERT_EQ(session_.RunStep({"other/TensorBufferResume"}), OkStatus());
  std::atomic<bool> initialised{false};
  // A take from the other stage plays the part of the initialiser.
  InThread restart([&] {
    EXPECT_EQ(session_.RunStep(
                  {"prefetch/TensorBufferRestart", "other/TensorBufferTake"}),
              OkStatus());
  });
  session_.Await("restarting");
  InThread put([&] {
    EXPECT_EQ(session_.Put(1), OkStatus());
    EXPECT_TRUE(initialised);
  });
  session_.Await("1 runs, ");
  initialised = true;
  EXPECT_EQ(session_.RunStep({"other/TensorBufferPut"}), OkStatus());
  EXPECT_EQ(session_.Take(), 1);
}

TEST_P(RestartKernelsTest, ARestartEndsWhenItsStepFails) {
  EXPECT_EQ(session_.Run("TensorBufferClose"), OkStatus());
  EXPECT_TRUE(errors::IsInvalidArgument(session_.RunStep({"fail_restart"})));
  EXPECT_EQ(session_.Put(1), OkStatus());
  EXPECT_EQ(session_.Take(), 1);
}

// No Close follows a run that has put its record. One may follow a run that has
// failed, however late.
TEST_P(RestartKernelsTest, ALateCloseIsIgnoredOnlyAfterARunThatPutNothing) {
  EXPECT_EQ(session_.Put(1), OkStatus());
  EXPECT_EQ(session_.Run("TensorBufferRestart"), OkStatus());
  EXPECT_EQ(session_.Run("TensorBufferClose"), OkStatus());
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), ": closed"));
  EXPECT_EQ(session_.Run("TensorBufferResume"), OkStatus());
  EXPECT_TRUE(errors::IsInvalidArgument(session_.RunStep({"failed_put"})));
  EXPECT_EQ(session_.Run("TensorBufferRestart"), OkStatus());
  EXPECT_EQ(session_.Run("TensorBufferClose"), OkStatus());
  EXPECT_TRUE(absl::StrContains(session_.Buffer(), ": open"));
}

TEST_P(RestartKernelsTest, ARunWaitsInAClosedBufferUntilTheSessionCloses) {
  EXPECT_EQ(session_.Run("TensorBufferClose"), OkStatus());
  InThread put([&] {
    const Status status = session_.Put(1);
    EXPECT_TRUE(errors::IsCancelled(status)) << status;
  });
  session_.Await("1 runs, ");
  EXPECT_EQ(session_.session()->Close(), OkStatus());
}

TEST_P(RestartKernelsTest, AWaitingRestartEndsWhenTheSessionCloses) {
  ASSERT_EQ(session_.RunStep({"other/TensorBufferPut"}), OkStatus());
  // A restart cannot end this run, because it waits for room in the other
  // stage.
  InThread run([&] {
    EXPECT_TRUE(errors::IsCancelled(session_.RunStep(
        {"prefetch/TensorBufferPut", "other/TensorBufferPut"})));
  });
  session_.Await("1 put, ");
  InThread restart([&] {
    const Status status = session_.Run("TensorBufferRestart");
    EXPECT_TRUE(errors::IsCancelled(status)) << status;
  });
  session_.Await("1 restarts");
  EXPECT_EQ(session_.session()->Close(), OkStatus());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
