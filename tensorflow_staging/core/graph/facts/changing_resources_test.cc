// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/changing_resources.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;

// Tests which nodes may change variable `v`.
class ChangingResourcesTest : public ::testing::TestWithParam<bool> {
 protected:
  ChangingResourcesTest() : variable_(Variable("v")) {}

  // Whether variables are resources, rather than references.
  bool is_resource() const { return GetParam(); }

  Node* Variable(const std::string& name) {
    if (!is_resource()) return graph_.RefVariable(name);
    NodeBuilder builder(name, "VarHandleOp");
    builder.Attr("dtype", DT_INT64)
        .Attr("shape", TensorShape({}))
        .Attr("shared_name", name);
    return graph_.Finalize(&builder);
  }

  Node* Read(const std::string& name, Node* variable) {
    NodeBuilder builder(name, is_resource() ? "ReadVariableOp" : "Identity");
    builder.Input(variable);
    if (is_resource()) builder.Attr("dtype", DT_INT64);
    return graph_.Finalize(&builder);
  }

  Node* Update(const std::string& name, const std::string& op, Node* variable,
               TestGraph::Out value) {
    NodeBuilder builder(name, is_resource() ? op + "VariableOp" : op);
    builder.Input(variable).Input(value);
    return graph_.Finalize(&builder);
  }

  Node* Assign(const std::string& name, TestGraph::Out value) {
    return Update(name, "Assign", variable_, value);
  }

  // What RestoreV2 reads from a checkpoint whose name is fed.
  Node* Restored(const std::string& name) {
    const Tensor names(DT_STRING, TensorShape({1}));
    NodeBuilder names_node(name + "/names", "Const");
    names_node.Attr("dtype", DT_STRING).Attr("value", names);
    Node* tensors = graph_.Finalize(&names_node);
    NodeBuilder file(name + "/file", "Placeholder");
    file.Attr("dtype", DT_STRING);
    NodeBuilder restore(name, "RestoreV2");
    restore.Input(graph_.Finalize(&file))
        .Input(tensors)
        .Input(tensors)
        .Attr("dtypes", DataTypeVector{DT_INT64});
    return graph_.Finalize(&restore);
  }

  Strings Changers(const NodeFilter& counts = {}) {
    const Resources resources(*graph_.get(), counts);
    ChangingResources changing(*graph_.get(), resources, counts);
    return Names(changing.ChangersOf(*variable_));
  }

  const Node* Initializer() {
    const Resources resources(*graph_.get());
    ChangingResources changing(*graph_.get(), resources, NodeFilter());
    return changing.InitializerOf(*variable_);
  }

  TestGraph graph_;
  Node* variable_;
};

INSTANTIATE_TEST_SUITE_P(ResourceAndRef, ChangingResourcesTest,
                         ::testing::Bool());

TEST_P(ChangingResourcesTest, AVariableThatIsOnlyInitialisedDoesNotChange) {
  Node* assign = Assign("v/Assign", graph_.Random("random"));
  Node* init = graph_.NoOp("init");
  graph_.AddControl(assign, init);
  graph_.AddControl(init, graph_.NoOp("group"));
  Read("read", variable_);
  EXPECT_EQ(Changers(), Strings());
}

TEST_P(ChangingResourcesTest, AnUpdateChangesIt) {
  Assign("v/Assign", graph_.Const("zero", 0));
  Update("train", "AssignAdd", variable_, graph_.Const("one", 1));
  EXPECT_EQ(Changers(), Strings{"train"});
}

TEST_P(ChangingResourcesTest, RestoringItDoesNot) {
  Assign("v/Assign", graph_.Const("zero", 0));
  Assign("save/Assign", graph_.Neg("reshaped", Restored("save/RestoreV2")));
  Assign("other_save/Assign", Restored("other_save/RestoreV2"));
  EXPECT_EQ(Changers(), Strings());
}

TEST_P(ChangingResourcesTest, ARestoredValueMixedWithARecordChangesIt) {
  Assign("mix", graph_.AddN("sum", {Restored("save/RestoreV2"),
                                    graph_.Source("next")}));
  EXPECT_EQ(Changers(), Strings{"mix"});
}

TEST_P(ChangingResourcesTest, ASecondAssignmentChangesIt) {
  Assign("v/Assign", graph_.Const("zero", 0));
  Assign("set_to_one", graph_.Const("one", 1));
  EXPECT_EQ(Changers(), (Strings{"v/Assign", "set_to_one"}));
}

TEST_P(ChangingResourcesTest, AnAssignmentThatCountsNotChangesNothing) {
  Assign("v/Assign", graph_.Const("zero", 0));
  const Node* later = Assign("later", graph_.Const("one", 1));
  EXPECT_EQ(Changers(NodeFilter(
                [later](const Node& node) { return &node != later; })),
            Strings());
}

TEST_P(ChangingResourcesTest, TheValueOfARecordOrAPlaceholderChangesIt) {
  Node* assign = Assign("assign", graph_.Neg("neg", graph_.Source("next")));
  EXPECT_EQ(Changers(), Strings{"assign"});
  graph_.get()->RemoveNode(assign);
  assign = Assign("assign", graph_.Placeholder("fed"));
  EXPECT_EQ(Changers(), Strings{"assign"});
}

TEST_P(ChangingResourcesTest, AnAssignmentAfterARecordChangesIt) {
  Node* assign = Assign("assign", graph_.Const("zero", 0));
  graph_.AddControl(graph_.Source("next"), assign);
  EXPECT_EQ(Changers(), Strings{"assign"});
}

TEST_P(ChangingResourcesTest, AnAssignmentThatOtherNodesWaitForChangesIt) {
  Node* assign = Assign("assign", graph_.Random("random"));
  Node* group = graph_.NoOp("group");
  graph_.AddControl(assign, group);
  graph_.AddControl(group, graph_.Const("after", 1));
  EXPECT_EQ(Changers(), Strings{"assign"});
}

TEST_P(ChangingResourcesTest, ItsOwnValueChangesIt) {
  Assign("twice", graph_.AddN("sum", {Read("read", variable_)}));
  EXPECT_EQ(Changers(), Strings{"twice"});
}

TEST_P(ChangingResourcesTest, TheInitialValueMayBeThatOfAConstantVariable) {
  Node* other = Variable("other");
  Update("other/Assign", "Assign", other, graph_.Const("zero", 0));
  Assign("v/Assign", Read("read", other));
  EXPECT_EQ(Changers(), Strings());
  Update("train", "AssignAdd", other, graph_.Const("one", 1));
  EXPECT_EQ(Changers(), Strings{"v/Assign"});
}

TEST_P(ChangingResourcesTest, VariablesThatCopyEachOtherChange) {
  Node* other = Variable("other");
  Update("copy_back", "Assign", other, Read("read", variable_));
  Assign("copy", Read("read_other", other));
  EXPECT_EQ(Changers(), Strings{"copy"});
}

TEST_P(ChangingResourcesTest, AnUpdateThroughAnotherOpOfItsNameChangesIt) {
  Node* same = is_resource() ? Variable("other_op") : nullptr;
  if (is_resource()) {
    same->ClearAttr("shared_name");
    same->AddAttr("shared_name", "v");
  } else {
    NodeBuilder builder("other_op", "VariableV2");
    builder.Attr("dtype", DT_INT64)
        .Attr("shape", TensorShape({}))
        .Attr("shared_name", "v");
    same = graph_.Finalize(&builder);
  }
  Update("train", "AssignAdd", same, graph_.Const("one", 1));
  EXPECT_EQ(Changers(), Strings{"train"});
}

TEST_P(ChangingResourcesTest, TheInitialiserOfATrainedVariableIsFound) {
  const Node* assign = Assign("v/Assign", graph_.Const("zero", 0));
  Assign("save/Assign", Restored("save/RestoreV2"));
  Assign("train", graph_.Neg("neg", graph_.Source("next")));
  EXPECT_EQ(Initializer(), assign);
}

TEST_P(ChangingResourcesTest, OfTwoPossibleInitialisersNoneIsFound) {
  Assign("v/Assign", graph_.Const("zero", 0));
  Assign("reset", graph_.Const("one", 1));
  EXPECT_EQ(Initializer(), nullptr);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
