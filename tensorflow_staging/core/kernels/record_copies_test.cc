// SPDX-License-Identifier: Apache-2.0
//
// Tests what the ops that save and restore records make of wrong attributes.
// session/gpu_checkpoint_session_test.cc tests the copies.

#include "tensorflow_staging/core/kernels/record_copies.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/kernels/saved_record.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

// A node that saves or restores records of one tensor, `record:0`.
struct CheckpointNode {
  std::string op = kSaveOp;
  std::string records_device = kGpu;
  std::vector<int> host_tensors;
  // Where a Put has put a record before; empty if none has.
  std::string put_device;
  // What a checkpoint holds.
  std::vector<Tensor> saved;
  DataType dtype = DT_INT64;

  Status Run() const {
    const StageTestGraph stage;
    NodeDefBuilder node = stage.Op(op);
    node.Input("position", 0, DT_VARIANT)
        .Attr(kStageNameAttr, "prefetch")
        .Attr(kTensorNamesAttr, std::vector<std::string>{"record:0"})
        .Attr(kRecordsDeviceAttr, records_device)
        .Attr(kHostTensorsAttr, host_tensors)
        .Device("/device:CPU:0");
    if (op == kRestoreOp) node.Attr(kDtypesAttr, DataTypeVector{dtype});
    GraphDef graph;
    StageTestGraph::Add(NodeDefBuilder("position", "Placeholder")
                            .Attr("dtype", DT_VARIANT)
                            .Device("/device:CPU:0"),
                        &graph);
    StageTestGraph::Add(node, &graph);
    if (!put_device.empty()) {
      StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                          &graph);
      StageTestGraph::Add(stage.Op(kPutOp)
                              .Input(std::vector<NodeDefBuilder::NodeOut>{
                                  {"record", 0, DT_INT64}})
                              .Device(put_device),
                          &graph);
    }
    std::unique_ptr<Session> session(NewSession(SessionOptions()));
    TF_RETURN_IF_ERROR(session->Create(graph));
    if (!put_device.empty()) {
      TF_RETURN_IF_ERROR(session->Run({}, {}, {stage.Node(kPutOp)}, nullptr));
    }
    Tensor position(DT_VARIANT,
                    TensorShape({static_cast<int64_t>(saved.size())}));
    for (size_t i = 0; i < saved.size(); ++i) {
      position.vec<Variant>()(i) =
          SavedRecord{"prefetch", {"record:0"}, {saved[i]}};
    }
    return session->Run({{"position", position}}, {}, {stage.Node(op)},
                        nullptr);
  }
};

void ExpectRefused(const CheckpointNode& node, const std::string& text) {
  const Status status = node.Run();
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
}

TEST(RecordCopiesTest, AGraphWithAWrongDeviceOfRecordsIsRefused) {
  for (const char* op : {kSaveOp, kRestoreOp}) {
    CheckpointNode node;
    node.op = op;
    node.saved = {Tensor(int64_t{7})};
    node.records_device = "nowhere";
    ExpectRefused(node, "'nowhere', which is no device's full name");
    node.records_device = "/job:localhost/replica:0/task:0/device:GPU:9";
    ExpectRefused(node, "which is no device of this session");
    node.records_device = "/job:localhost/replica:0/task:0/device:CPU:0";
    ExpectRefused(node, "which is no accelerator");
    node.records_device = kGpu;
    node.put_device = "/device:CPU:0";
    ExpectRefused(node, "but the stage's records are on CPU:0");
  }
}

TEST(RecordCopiesTest, AGraphWithWrongTensorsOnTheHostIsRefused) {
  CheckpointNode node;
  node.host_tensors = {0};
  EXPECT_EQ(node.Run(), OkStatus());
  node.host_tensors = {1};
  ExpectRefused(node, "contains 1; it must contain indices of its 1 tensors");
  node.host_tensors = {-1, 0};
  ExpectRefused(node, "contains -1; it must contain");
}

TEST(RecordCopiesTest, ATypeThatNoGpuHoldsIsRefused) {
  CheckpointNode node;
  node.op = kRestoreOp;
  node.saved = {Tensor("text")};
  node.dtype = DT_STRING;
  ExpectRefused(node, "The tensor 'record:0' of a record could not be copied");
  ExpectRefused(node, "it is of type string");
}

TEST(RecordCopiesTest, AVariantThatNoGpuHoldsIsNamed) {
  CheckpointNode node;
  node.op = kRestoreOp;
  node.saved = {Tensor(DT_VARIANT, TensorShape({1}))};
  node.saved[0].vec<Variant>()(0) = SavedRecord{"another", {}, {}};
  node.dtype = DT_VARIANT;
  const Status status = node.Run();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "The tensor 'record:0'"))
      << status;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
