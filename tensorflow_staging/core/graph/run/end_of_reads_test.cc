// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/end_of_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

class EndOfReadsTest : public ::testing::Test {
 protected:
  Node* Put(Node* input, bool is_ordered = true,
            const std::string& device = kCpu) {
    Node* put = nullptr;
    TF_CHECK_OK(NodeBuilder("put", kPutOp)
                    .Input(std::vector<NodeBuilder::NodeOut>{input})
                    .Attr(kSharedNameAttr, "stage")
                    .Attr(kIsOrderedAttr, is_ordered)
                    .Finalize(graph_.get(), &put));
    put->set_assigned_device_name(device);
    return put;
  }

  // What the run does before it says that it reads no more; nothing if it does not
  // say so.
  std::vector<std::string> Ordered() {
    std::vector<std::string> names;
    for (const Node* node : graph_.get()->op_nodes()) {
      if (node->type_string() != kEndReadsOp) continue;
      EXPECT_EQ(node->assigned_device_name(), kCpu);
      EXPECT_EQ(node->name(), "put/end_reads/_0");
      for (const Edge* edge : node->in_edges()) {
        names.push_back(edge->src()->name());
      }
    }
    return names;
  }

  TestGraph graph_;
  Node* const iterator_ = graph_.Iterator("iterator");
};

TEST_F(EndOfReadsTest, ComesAfterReadsAndDraws) {
  Node* next = graph_.GetNext("next", iterator_);
  Put(graph_.AddN("sum",
                  {graph_.Neg("negative", next), graph_.Random("draw")}));
  TF_ASSERT_OK(AddEndOfReads(graph_.get()));
  EXPECT_THAT(Ordered(), UnorderedElementsAre("next", "draw"));
}

TEST_F(EndOfReadsTest, IsOnACpuAlsoIfThePutIsOnAGpu) {
  Put(graph_.GetNext("next", iterator_), /*is_ordered=*/true, kGpu);
  TF_ASSERT_OK(AddEndOfReads(graph_.get()));
  EXPECT_THAT(Ordered(), ElementsAre("next"));
}

TEST_F(EndOfReadsTest, ARunThatReadsNothingSaysSoAtOnce) {
  Put(graph_.Const("constant", 1));
  TF_ASSERT_OK(AddEndOfReads(graph_.get()));
  EXPECT_THAT(Ordered(), ElementsAre("_SOURCE"));
}

TEST_F(EndOfReadsTest, OneProducerAndStepsNeedNone) {
  Put(graph_.GetNext("next", iterator_), /*is_ordered=*/false);
  TF_ASSERT_OK(AddEndOfReads(graph_.get()));
  EXPECT_THAT(Ordered(), IsEmpty());
}

TEST_F(EndOfReadsTest, ChecksMayComeLater) {
  Node* next = graph_.GetNext("next", iterator_);
  Node* checked = nullptr;
  TF_CHECK_OK(NodeBuilder("checked", "EagerPyFunc")
                  .Input(std::vector<NodeBuilder::NodeOut>{next})
                  .Attr("token", "f")
                  .Attr("Tin", DataTypeVector{DT_INT64})
                  .Attr("Tout", DataTypeVector{DT_INT64})
                  .Finalize(graph_.get(), &checked));
  Put(checked);
  TF_ASSERT_OK(AddEndOfReads(graph_.get()));
  EXPECT_THAT(Ordered(), ElementsAre("next"));
}

TEST_F(EndOfReadsTest, AReadInABranchMayNotRun) {
  Node* next = graph_.GetNext("next", iterator_);
  Node* branch = graph_.Switch(
      "switch", next, graph_.Less("predicate", next, graph_.Const("one", 1)));
  Node* draw = graph_.Random("draw");
  graph_.get()->AddControlEdge(branch, draw);
  Put(draw);
  TF_ASSERT_OK(AddEndOfReads(graph_.get()));
  EXPECT_THAT(Ordered(), IsEmpty());
}

TEST_F(EndOfReadsTest, APutOnNoDeviceIsAnError) {
  Put(graph_.GetNext("next", iterator_), /*is_ordered=*/true, "nowhere");
  EXPECT_EQ(AddEndOfReads(graph_.get()).code(), error::INTERNAL);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
