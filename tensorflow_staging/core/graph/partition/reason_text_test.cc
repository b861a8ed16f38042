// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/reason_text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(ReasonTextTest, TheTextNamesTheNodeThatTheReasonIsAbout) {
  TestGraph graph;
  const Node* variable = graph.RefVariable("emb");
  const Node* node = graph.Const("node", 1);
  EXPECT_EQ(ReasonText(*node, {StepReason::kVariable, variable}),
            "depends on variable 'emb' (VariableV2)");
}

TEST(ReasonTextTest, TheReasonMayBeAboutTheNodeItself) {
  TestGraph graph;
  const Node* node = graph.RefVariable("emb");
  EXPECT_EQ(ReasonText(*node, {StepReason::kVariable, node}),
            "is a variable, or forwards a variable reference");
}

TEST(ReasonTextTest, TheReasonMayBeAboutNoNode) {
  TestGraph graph;
  const Node* node = graph.Const("node", 1);
  EXPECT_EQ(ReasonText(*node, {StepReason::kUnneeded, nullptr}),
            "is computed only if a run asks for it");
  EXPECT_EQ(ReasonText(*node, {StepReason::kNone, nullptr}), "runs ahead");
}

TEST(ReasonTextTest, EveryReasonHasItsOwnText) {
  TestGraph graph;
  const Node* node = graph.Const("node", 1);
  const Node* other = graph.Const("other", 1);
  std::set<std::string> texts;
  std::set<std::string> own_texts;
  const int reasons = static_cast<int>(StepReason::kNoSource) + 1;
  for (int i = 0; i < reasons; ++i) {
    const auto reason = static_cast<StepReason>(i);
    texts.insert(ReasonText(*node, {reason, other}));
    own_texts.insert(ReasonText(*node, {reason, node}));
  }
  EXPECT_EQ(texts.size(), reasons);
  EXPECT_EQ(own_texts.size(), reasons);
}

TEST(ReasonTextTest, ThereIsAdviceForReasonsThatAreAboutANode) {
  const int reasons = static_cast<int>(StepReason::kNoSource) + 1;
  for (int i = 0; i < reasons; ++i) {
    const auto reason = static_cast<StepReason>(i);
    const bool about_a_node =
        reason != StepReason::kNone && reason < StepReason::kNothingToCarry;
    EXPECT_EQ(std::string(AdviceText(reason)).empty(), !about_a_node) << i;
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
