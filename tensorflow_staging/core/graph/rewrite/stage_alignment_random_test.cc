// SPDX-License-Identifier: Apache-2.0
//
// Checks invariants of the alignment of manual stages on random graphs. A
// failure reports the seed of its graph.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_staging/core/graph/facts/control_flow.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/random_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kGraphs = 2000;

using Names = std::set<std::string>;

// A random graph after its manual stages have been aligned.
class Aligned {
 public:
  explicit Aligned(int seed) : random_(seed, &graph_) {
    const int nodes = graph_.get()->num_op_nodes();
    status_ = AlignStages(NodeFilter(), RecordContent::kElements,
                          RewriteOptions(), graph_.get());
    changed_ = graph_.get()->num_op_nodes() != nodes;
    const StagePlan plan(*graph_.get(), /*smart_stage=*/false, /*name=*/"");
    for (const PlannedStage& stage : plan.stages()) {
      num_puts_[stage.name] = stage.puts.size();
      ReverseDFSFrom(*graph_.get(), stage.puts,
                     [&](const Node* node) {
                       if (node->IsOp()) stages_of_[node].insert(stage.name);
                     },
                     /*leave=*/{});
    }
  }

  Graph* graph() { return graph_.get(); }
  const Status& status() const { return status_; }
  // Whether the alignment has added nodes.
  bool changed() const { return changed_; }
  bool HasStages() const { return !num_puts_.empty(); }
  // The stages whose Puts need `node`. A Take ends nothing here: what leads to
  // the record that a stage takes leads to the stage as well.
  Names StagesOf(const Node* node) const {
    const auto it = stages_of_.find(node);
    return it == stages_of_.end() ? Names() : it->second;
  }
  // Whether a record of each stage is of one Put, so that it can be longer.
  bool OnePutEach() const {
    for (const auto& [stage, puts] : num_puts_) {
      if (puts != 1) return false;
    }
    return true;
  }

 private:
  TestGraph graph_;
  const RandomGraph random_;
  bool changed_ = false;
  Status status_;
  std::map<std::string, size_t> num_puts_;
  std::map<const Node*, Names> stages_of_;
};

TEST(RandomAlignmentTest, TheGraphStaysAGraph) {
  int aligned = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    Aligned after(seed);
    ASSERT_EQ(after.status(), OkStatus()) << seed;
    if (!after.HasStages()) continue;
    aligned += after.changed();
    Names names;
    for (const Node* node : after.graph()->op_nodes()) {
      ASSERT_TRUE(names.insert(node->name()).second)
          << seed << ": " << node->name();
    }
    std::vector<ControlFlowInfo> frames;
    ASSERT_EQ(BuildControlFlowInfo(after.graph(), &frames), OkStatus()) << seed;
    std::vector<Node*> order;
    GetPostOrder(*after.graph(), &order);
    ASSERT_EQ(order.size(), after.graph()->num_nodes()) << seed;
  }
  EXPECT_GT(aligned, kGraphs / 20);
}

// Otherwise a step would draw an element that is not the one of its record.
TEST(RandomAlignmentTest, OneSideReadsASource) {
  int checked = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    Aligned after(seed);
    if (!after.HasStages() || !after.OnePutEach()) continue;
    const ControlFlow control_flow = FindControlFlow(
        *after.graph(), std::vector<bool>(after.graph()->num_node_ids(), true));
    for (const Node* node : after.graph()->op_nodes()) {
      if (node->type_string() != "IteratorGetNext" ||
          after.StagesOf(node).empty()) {
        continue;
      }
      ++checked;
      std::vector<const Node*> found;
      DFSFrom(*after.graph(), std::vector<const Node*>{node},
              [&found](const Node* user) { found.push_back(user); },
              /*leave=*/{});
      for (const Node* user : found) {
        // A tensor of a branch or a loop cannot be carried, and a loop is in
        // the region as a whole, also what no Put needs of it.
        if (!user->IsOp() || control_flow.is_inside[user->id()] ||
            absl::StrContains(user->name(), "/region/")) {
          continue;
        }
        ASSERT_FALSE(after.StagesOf(user).empty())
            << seed << ": " << user->name() << " uses " << node->name();
      }
    }
  }
  EXPECT_GT(checked, kGraphs / 20);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
