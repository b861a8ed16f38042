// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/restart_nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;

class RestartNodesTest : public ::testing::Test {
 protected:
  RestartNodesTest()
      : iterator_(graph_.Iterator("iterator")),
        next_(graph_.GetNext("next", iterator_)),
        put_(graph_.Put("stage/TensorBufferPut", "stage", {next_})) {
    put_->ClearAttr("container");
    put_->AddAttr("container", "staging.1");
    put_->ClearAttr("capacity");
    put_->AddAttr("capacity", 7);
    put_->set_requested_device("/job:worker/task:1/device:CPU:0");
  }

  TestGraph graph_;
  Node* iterator_;
  Node* next_;
  Node* put_;
};

TEST_F(RestartNodesTest, TheBeginPrecedesTheStageAndTheRestartTheInitializer) {
  Node* initialize = graph_.InitializeWithRange("initialize", iterator_, 0, 9);
  Node* restart = nullptr;
  ASSERT_EQ(AddBegin("stage", *put_, {next_}, graph_.get()), OkStatus());
  ASSERT_EQ(AddRestart("stage", *put_, {initialize}, graph_.get(), &restart),
            OkStatus());
  EXPECT_EQ(restart, graph_.Find("stage/TensorBufferRestart"));
  EXPECT_EQ(graph_.Inputs("next"),
            (Strings{"iterator", "^stage/TensorBufferBegin"}));
  EXPECT_EQ(
      graph_.Inputs("initialize"),
      (Strings{"initialize/range", "iterator", "^stage/TensorBufferRestart"}));
  for (const char* name :
       {"stage/TensorBufferBegin", "stage/TensorBufferRestart"}) {
    const Node* node = graph_.Find(name);
    ASSERT_NE(node, nullptr) << name;
    EXPECT_EQ(GetNodeAttrString(node->attrs(), "shared_name"), "stage");
    EXPECT_EQ(GetNodeAttrString(node->attrs(), "container"), "staging.1");
    int64_t capacity = 0;
    EXPECT_EQ(GetNodeAttr(node->attrs(), "capacity", &capacity), OkStatus());
    EXPECT_EQ(capacity, 7);
    EXPECT_EQ(node->requested_device(), "/job:worker/task:1/device:CPU:0");
    Strings colocated;
    EXPECT_EQ(GetNodeAttr(node->attrs(), "_class", &colocated), OkStatus());
    EXPECT_EQ(colocated, Strings{"loc:@stage/TensorBufferPut"});
  }
}

TEST_F(RestartNodesTest, WithoutAnInitializerTheGraphIsUnchanged) {
  const int nodes = graph_.get()->num_op_nodes();
  Node* restart = nullptr;
  ASSERT_EQ(AddRestart("stage", *put_, {}, graph_.get(), &restart), OkStatus());
  EXPECT_EQ(restart, nullptr);
  EXPECT_EQ(graph_.get()->num_op_nodes(), nodes);
  EXPECT_EQ(graph_.Inputs("next"), Strings{"iterator"});
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
