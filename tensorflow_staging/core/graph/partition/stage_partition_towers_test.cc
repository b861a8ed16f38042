// SPDX-License-Identifier: Apache-2.0
//
// Tests the partition of models with several towers, each of which gets an
// element of one iterator.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;

// For each tower k: iterator --> next_k --> ahead_k --> loss_k <-- weight.
class TowersTest : public ::testing::Test {
 protected:
  void AddTowers(int count) {
    weight_ = graph_.ReadVariable("weight");
    iterator_ = graph_.Iterator("iterator");
    for (int k = 0; k < count; ++k) AddTower(strings::StrCat(k), iterator_);
  }

  void AddTower(const std::string& k, Node* iterator) {
    Node* next = graph_.GetNext("next_" + k, iterator);
    ahead_.push_back(graph_.Neg("ahead_" + k, next));
    losses_.push_back(graph_.AddN("loss_" + k, {ahead_.back(), weight_}));
  }

  // A node of the step that updates a variable of its own.
  Node* Update(const std::string& name, const TestGraph::Outs& inputs) {
    NodeBuilder update(name, "AssignAddVariableOp");
    update
        .Input(graph_.Lone(name + "_variable", "VarHandleOp",
                           {{"dtype", TestGraph::Attr(DT_INT64)}}))
        .Input(graph_.AddN(name + "_value", inputs))
        .Attr("dtype", DT_INT64);
    return graph_.Finalize(&update);
  }

  Node* UpdateOfAllTowers(const std::string& name) {
    return Update(name, TestGraph::Outs(losses_.begin(), losses_.end()));
  }

  std::vector<Strings> Regions(AlignedWith aligned = AlignedWith::kTraining) {
    partition_ = std::make_unique<StagePartition>(
        *graph_.get(), NodeFilter(), RecordContent::kElements,
        /*stale=*/nullptr, GivenRoles(), aligned);
    std::vector<Strings> regions;
    for (const StagedRegion& region : partition_->regions()) {
      regions.push_back(Names(region.nodes));
    }
    return regions;
  }

  StepReason WhyNot(const std::string& node) const {
    return partition_->WhyNot(*graph_.Find(node)).reason;
  }

  const std::vector<Strings> none_;
  TestGraph graph_;
  Node* weight_ = nullptr;
  Node* iterator_ = nullptr;
  // By tower.
  std::vector<Node*> ahead_;
  std::vector<Node*> losses_;

 private:
  std::unique_ptr<StagePartition> partition_;
};

TEST_F(TowersTest, TowersThatTrainTogetherAreOneRegion) {
  AddTowers(3);
  UpdateOfAllTowers("train");
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"next_0", "next_1", "next_2", "ahead_0",
                                   "ahead_1", "ahead_2"}}));
  EXPECT_EQ(WhyNot("loss_0"), StepReason::kVariable);
}

TEST_F(TowersTest, ARunOfOneTowerCountsIfItCannotBeUnstaged) {
  AddTowers(2);
  UpdateOfAllTowers("train");
  EXPECT_EQ(Regions(AlignedWith::kEachRun), none_);
  EXPECT_EQ(WhyNot("next_0"), StepReason::kMixedSources);
}

TEST_F(TowersTest, AModelWhoseTowersTrainSeparatelyStays) {
  AddTowers(2);
  UpdateOfAllTowers("train");
  Update("train_0", {losses_[0]});
  EXPECT_EQ(Regions(), none_);
  EXPECT_EQ(WhyNot("next_1"), StepReason::kMixedSources);
}

// Such as of the moving averages of a tower, for which the step waits.
TEST_F(TowersTest, AnUpdateOfOneTowerMayComeBeforeTheLastOne) {
  AddTowers(2);
  Node* average = Update("average", {losses_[0]});
  graph_.AddControl(average, UpdateOfAllTowers("train"));
  EXPECT_EQ(Regions().size(), 1);
}

TEST_F(TowersTest, AnUpdateWithoutATowerDoesNotMatter) {
  AddTowers(2);
  UpdateOfAllTowers("train");
  Update("count", {graph_.Const("one", 1)});
  EXPECT_EQ(Regions().size(), 1);
}

// Each of its runs may be for another tower.
TEST_F(TowersTest, AModelThatOnlyPredictsStays) {
  AddTowers(2);
  EXPECT_EQ(Regions(), none_);
  EXPECT_EQ(WhyNot("next_0"), StepReason::kMixedSources);
}

TEST_F(TowersTest, AMarkedNodeTrainsNothing) {
  AddTowers(2);
  graph_.Target("target", TestGraph::Outs(losses_.begin(), losses_.end()));
  EXPECT_EQ(Regions(), none_);
}

TEST_F(TowersTest, ADrawForAllTowersRunsAhead) {
  AddTowers(0);
  Node* draw = graph_.Random("draw");
  for (const std::string k : {"0", "1"}) {
    Node* noisy = graph_.AddN("noisy_" + k,
                              {graph_.GetNext("next_" + k, iterator_), draw});
    losses_.push_back(graph_.AddN("loss_" + k, {noisy, weight_}));
  }
  UpdateOfAllTowers("train");
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next_0", "next_1", "draw",
                                              "noisy_0", "noisy_1"}}));
}

TEST_F(TowersTest, AnIteratorThatCanBeginAnewMayHaveTowers) {
  AddTowers(2);
  graph_.InitializeWithRange("initialize", iterator_, 0, 4);
  UpdateOfAllTowers("train");
  EXPECT_EQ(Regions().size(), 1);
}

// A new beginning of one would drop records that have elements of the other.
TEST_F(TowersTest, AnIteratorThatCanBeginAnewIsNotJoinedWithAnother) {
  AddTowers(2);
  graph_.InitializeWithRange("initialize", iterator_, 0, 4);
  Node* both = graph_.AddN("both", {ahead_[0], graph_.Source("other")});
  losses_.push_back(graph_.AddN("loss_both", {both, weight_}));
  UpdateOfAllTowers("train");
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"other"}}));
  EXPECT_EQ(WhyNot("both"), StepReason::kMixedSources);
}

// The iterators have a region each, without the node that joins them.
TEST_F(TowersTest, SeparateUsesOfDifferentIteratorsStayApart) {
  weight_ = graph_.ReadVariable("weight");
  AddTower("a", graph_.Iterator("a"));
  AddTower("b", graph_.Iterator("b"));
  Node* both = graph_.AddN("both", {ahead_[0], ahead_[1]});
  losses_.push_back(graph_.AddN("loss_both", {both, weight_}));
  UpdateOfAllTowers("train");
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next_a", "ahead_a"},
                                             {"next_b", "ahead_b"}}));
  EXPECT_EQ(WhyNot("both"), StepReason::kMixedSources);
}

TEST_F(TowersTest, TowersThatReadTwoIteratorsAreOneRegion) {
  weight_ = graph_.ReadVariable("weight");
  Node* features = graph_.Iterator("features");
  Node* labels = graph_.Iterator("labels");
  for (const std::string k : {"0", "1"}) {
    Node* both =
        graph_.AddN("both_" + k, {graph_.GetNext("feature_" + k, features),
                                  graph_.GetNext("label_" + k, labels)});
    losses_.push_back(graph_.AddN("loss_" + k, {both, weight_}));
  }
  UpdateOfAllTowers("train");
  ASSERT_EQ(Regions().size(), 1);
  EXPECT_EQ(Regions()[0].size(), 6);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
