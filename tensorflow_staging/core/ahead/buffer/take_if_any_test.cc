// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer_handle.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeOut = NodeDefBuilder::NodeOut;

// A session over
//
//   value --> put    next = TakeIfAny --> first, second: Takes of the same record
class TakeIfAnyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphDef graph;
    const auto add = [&graph](NodeDefBuilder builder) {
      TF_CHECK_OK(builder.Finalize(graph.add_node()));
    };
    add(NodeDefBuilder("value", "Placeholder").Attr("dtype", DT_INT64));
    add(NodeDefBuilder("buffer", "StepBuffer")
            .Attr("stage", "step")
            .Attr("capacity", 4));
    // A handle cannot be fed, so a staging area keeps it from run to run.
    add(NodeDefBuilder("keep", "Stage")
            .Input(std::vector<NodeOut>{{"buffer", 0, DT_RESOURCE}})
            .Attr("shared_name", "kept"));
    add(NodeDefBuilder("index", "Const")
            .Attr("value", Tensor(0))
            .Attr("dtype", DT_INT32));
    add(NodeDefBuilder("handle", "StagePeek")
            .Input("index", 0, DT_INT32)
            .Attr("dtypes", {DT_RESOURCE})
            .Attr("shared_name", "kept"));
    add(NodeDefBuilder("put", kStepPutOp)
            .Input("handle", 0, DT_RESOURCE)
            .Input(std::vector<NodeOut>{{"value", 0, DT_INT64}}));
    add(NodeDefBuilder("next", kStepTakeIfAnyOp)
            .Input("handle", 0, DT_RESOURCE));
    for (const char* name : {"first", "second"}) {
      NodeDefBuilder take(name, kStepTakeOp);
      take.Input("next", 0, DT_RESOURCE).Attr("dtypes", {DT_INT64});
      if (name == std::string("second")) take.ControlInput("first");
      add(take);
    }
    session_.reset(NewSession(SessionOptions()));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"keep"}, nullptr));
  }

  StatusOr<std::vector<Tensor>> Run(const std::vector<std::string>& fetches) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(session_->Run({}, fetches, {}, &outputs));
    return outputs;
  }

  void Put(int64_t value) {
    TF_ASSERT_OK(
        session_->Run({{"value", Tensor(value)}}, {}, {"put"}, nullptr));
  }

  std::unique_ptr<Session> session_;
};

TEST_F(TakeIfAnyTest, RecordsInOrderUntilTheEnd) {
  Put(3);
  Put(4);
  for (int64_t value : {3, 4}) {
    TF_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                            Run({"next:1", "first:0"}));
    EXPECT_TRUE(outputs[0].scalar<bool>()());
    EXPECT_EQ(outputs[1].scalar<int64_t>()(), value);
  }
  TF_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> handle, Run({"handle:0"}));
  TF_ASSERT_OK_AND_ASSIGN(const StepBufferRef buffer, StepBufferOf(handle[0]));
  buffer->Close(OkStatus());
  for (int i = 0; i < 2; ++i) {
    TF_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Run({"next:1"}));
    EXPECT_FALSE(outputs[0].scalar<bool>()());
  }
  // Without a record, its handle is no valid one.
  EXPECT_TRUE(errors::IsInvalidArgument(Run({"first:0"}).status()));
  EXPECT_EQ(buffer->errors_taken(), 0);
}

TEST_F(TakeIfAnyTest, AnErrorOfTheRegionIsNotTheEnd) {
  Put(3);
  TF_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> handle, Run({"handle:0"}));
  TF_ASSERT_OK_AND_ASSIGN(const StepBufferRef buffer, StepBufferOf(handle[0]));
  buffer->Close(errors::DataLoss("torn"));
  TF_ASSERT_OK(Run({"first:0"}).status());
  EXPECT_TRUE(errors::IsDataLoss(Run({"next:1"}).status()));
  EXPECT_EQ(buffer->errors_taken(), 1);
}

TEST_F(TakeIfAnyTest, ARecordIsUsedOnce) {
  Put(3);
  const Status status = Run({"second:0"}).status();
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("used before"), std::string::npos) << status;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
