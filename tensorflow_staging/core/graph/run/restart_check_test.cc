// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/restart_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;

// The graph of one run that restarts the stage "stage".
class RestartCheckTest : public ::testing::Test {
 protected:
  RestartCheckTest() { AddBufferOp("restart", "TensorBufferRestart"); }

  void AddBufferOp(const std::string& name, const std::string& op,
                   const std::string& stage = "stage",
                   const std::string& container = "session") {
    NodeBuilder builder(name, op);
    builder.Attr("shared_name", stage).Attr("container", container);
    if (op == "TensorBufferTake") {
      builder.Attr("dtypes", DataTypeVector{DT_INT64});
    }
    graph_.Finalize(&builder);
  }

  void ExpectRefusedBecauseOf(const std::string& name) {
    const Status status = CheckRestartIsARunOfItsOwn(*graph_.get());
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr("stage 'stage'"));
    EXPECT_THAT(message, HasSubstr("'" + name + "'"));
    EXPECT_THAT(message, HasSubstr("in a run of its own"));
  }

  TestGraph graph_;
};

TEST_F(RestartCheckTest, ARunOfItsOwnPasses) {
  AddBufferOp("size", "TensorBufferSize");
  EXPECT_EQ(CheckRestartIsARunOfItsOwn(*graph_.get()), OkStatus());
}

TEST_F(RestartCheckTest, ARunThatAlsoTakesARecordOfTheStageIsRefused) {
  AddBufferOp("take", "TensorBufferTake");
  ExpectRefusedBecauseOf("take");
}

TEST_F(RestartCheckTest, ARunThatAlsoProducesARecordOfTheStageIsRefused) {
  AddBufferOp("begin", "TensorBufferBegin");
  ExpectRefusedBecauseOf("begin");
}

TEST_F(RestartCheckTest, ARunMayTakeARecordOfAnotherBuffer) {
  AddBufferOp("other_stage", "TensorBufferTake", "other");
  AddBufferOp("other_session", "TensorBufferTake", "stage", "other");
  EXPECT_EQ(CheckRestartIsARunOfItsOwn(*graph_.get()), OkStatus());
}

TEST(RestartCheckWithoutRestartTest, EveryRunPasses) {
  TestGraph graph;
  graph.Target("target", {graph.Stage("stage", {graph.Source("next")})});
  EXPECT_EQ(CheckRestartIsARunOfItsOwn(*graph.get()), OkStatus());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
