// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_RANDOM_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_TESTING_RANDOM_GRAPH_H_

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {

// Builds a random graph of everything that matters to a partition: iterators
// that are read once or several times, by one op or by two, constants, draws,
// tables, variables of both kinds, placeholders, marked nodes, manual stages,
// conditionals and loops of version 1, also within each other, and data and
// control edges between them. Some nodes use a tensor of a branch. Equal seeds
// give equal graphs.
class RandomGraph {
 public:
  RandomGraph(int seed, TestGraph* graph) : random_(seed), graph_(*graph) {
    const int nodes = 5 + Below(40);
    AddConst();
    AddSource();
    while (created_ < nodes) AddAny();
    for (int i = Below(4); i >= 0; --i) {
      graph_.Target(NewName("target"), SomeOutputs());
    }
  }

  // The nodes whose outputs belong to the frame of a loop.
  const std::set<const Node*>& in_frames() const { return in_frames_; }

 private:
  int Below(int bound) { return random_() % bound; }

  std::string NewName(const char* kind) {
    return strings::StrCat(kind, created_++);
  }

  // Lets later nodes use the outputs of `node`. Sometimes adds a control edge
  // from an earlier node to it.
  void Keep(Node* node) {
    if (!nodes_.empty() && Below(5) == 0) {
      graph_.AddControl(nodes_[Below(nodes_.size())], node);
    }
    nodes_.push_back(node);
  }

  TestGraph::Out SomeOutput() {
    // Prefer recent nodes, so that the graph has long paths.
    const int last = nodes_.size() - 1;
    Node* node =
        nodes_[last - (Below(2) == 0 ? Below(last / 4 + 1) : Below(last + 1))];
    if (node->num_outputs() == 0) return SomeOutput();
    const int output = Below(node->num_outputs());
    // A Merge also yields the index of its input, an int32.
    return {node, node->output_type(output) == DT_INT64 ? output : 0};
  }

  TestGraph::Outs SomeOutputs() {
    TestGraph::Outs outputs;
    for (int i = Below(3); i >= 0; --i) outputs.push_back(SomeOutput());
    return outputs;
  }

  void AddConst() { Keep(graph_.Const(NewName("const"), 1)); }

  void AddSource() {
    const int components = 1 + Below(3);
    const std::string name = NewName("iterator");
    Node* iterator = graph_.Iterator(name, components);
    Keep(graph_.GetNext(NewName("next"), iterator, components));
    if (Below(4) > 0) return;
    if (Below(2) == 0) {
      iterator = graph_.Iterator(NewName("same"), components, name);
    }
    Keep(graph_.GetNext(NewName("next"), iterator, components));
  }

  void AddManualStage() {
    const std::string stage = NewName("stage");
    const TestGraph::Outs record = SomeOutputs();
    Node* take = graph_.Stage(stage, record);
    if (Below(3) == 0) {
      TestGraph::Outs other;
      for (size_t i = 0; i < record.size(); ++i) other.push_back(SomeOutput());
      graph_.Put(NewName("put"), stage, other);
    }
    Keep(take);
  }

  void AddConditional() {
    const std::string name = NewName("cond");
    Node* less = graph_.Less(name + "/less", SomeOutput(), SomeOutput());
    TestConditional cond(name, less, &graph_);
    const TestGraph::Outs captured = SomeOutputs();
    const int results = 1 + Below(2);
    TestGraph::Outs of_branch[2];
    for (const bool branch : {false, true}) {
      std::vector<Node*> visible;
      for (const TestGraph::Out& out : captured) {
        visible.push_back(
            graph_.Identity(NewName("captured"), cond.In(branch, out)));
      }
      of_branch[branch] =
          AddInside(cond.pivot(branch), std::move(visible), results);
    }
    for (int i = 0; i < results; ++i) {
      Keep(cond.Result(of_branch[0][i], of_branch[1][i]));
    }
    // A node after the conditional uses a tensor of a branch.
    if (Below(8) == 0) nodes_.push_back(of_branch[Below(2)][0].node);
  }

  void AddLoop() {
    const int first = graph_.get()->num_node_ids();
    const TestGraph::Outs initial = SomeOutputs();
    TestLoop loop(NewName("loop"), initial, SomeOutput(), &graph_);
    std::vector<Node*> visible = loop.body();
    if (Below(2) == 0) visible.push_back(loop.Invariant(SomeOutput()));
    const TestGraph::Outs next =
        AddInside(loop.body()[0], std::move(visible), initial.size());
    const std::vector<Node*> exits = loop.Close(next);
    for (int id = first; id < graph_.get()->num_node_ids(); ++id) {
      in_frames_.insert(graph_.get()->FindNodeId(id));
    }
    for (Node* exit : exits) {
      in_frames_.erase(exit);
      nodes_.push_back(exit);
    }
  }

  // Adds nodes to a branch or the body of a loop, where only those of `visible`
  // can be used, and returns some of the tensors there. Nodes without inputs
  // wait for `pivot`.
  TestGraph::Outs AddInside(Node* pivot, std::vector<Node*> visible,
                            int results) {
    const int first = graph_.get()->num_node_ids();
    nodes_.swap(visible);
    ++depth_;
    for (int i = Below(4); i > 0; --i) AddAnyInside();
    TestGraph::Outs outputs;
    for (int i = 0; i < results; ++i) outputs.push_back(SomeOutput());
    --depth_;
    nodes_.swap(visible);
    for (int id = first; id < graph_.get()->num_node_ids(); ++id) {
      Node* node = graph_.get()->FindNodeId(id);
      if (node->in_edges().empty()) graph_.AddControl(pivot, node);
    }
    return outputs;
  }

  void AddAnyInside() {
    switch (Below(40)) {
      case 0:
        return Keep(graph_.Target(NewName("target"), SomeOutputs()));
      case 1:
        return Keep(graph_.ReadVariable(NewName("variable")));
      case 2:
        return AddSource();
      case 3:
      case 4:
      case 5:
        return Keep(graph_.Random(NewName("draw")));
      case 6:
      case 7:
      case 8:
        return AddConst();
      case 9:
      case 10:
      case 11:
        return Keep(graph_.NoOp(NewName("group")));
      case 12:
      case 13:
      case 14:
      case 15:
        return depth_ < 3 ? AddConditional() : AddConst();
      case 16:
      case 17:
      case 18:
        return depth_ < 3 ? AddLoop() : AddConst();
      default:
        return Keep(graph_.AddN(NewName("sum"), SomeOutputs()));
    }
  }

  void AddAny() {
    switch (Below(24)) {
      case 0:
        return AddConst();
      case 1:
        return AddSource();
      case 22:
        return AddConditional();
      case 23:
        return AddLoop();
      case 2:
        return Keep(graph_.Random(NewName("draw")));
      case 3:
        return Keep(Below(2) == 0 ? graph_.RefVariable(NewName("variable"))
                                  : graph_.ReadVariable(NewName("variable")));
      case 4:
        return Keep(graph_.Placeholder(NewName("fed")));
      case 5:
        return Keep(graph_.Target(NewName("target"), SomeOutputs()));
      case 6:
        return Keep(graph_.NoOp(NewName("group")));
      case 7: {
        Node* table = graph_.Table(NewName("table"), "HashTableV2");
        return Keep(graph_.Lookup(NewName("found"), table, SomeOutput()));
      }
      case 8:
        return Below(2) == 0 ? AddManualStage() : AddConst();
      case 9:
      case 10:
      case 11:
        return Keep(graph_.IdentityN(NewName("identities"), SomeOutputs()));
      case 12:
      case 13:
      case 14:
      case 15:
        return Keep(graph_.Neg(NewName("neg"), SomeOutput()));
      default:
        return Keep(graph_.AddN(NewName("sum"), SomeOutputs()));
    }
  }

  std::mt19937 random_;
  TestGraph& graph_;
  int created_ = 0;
  // The nodes that new nodes can use.
  std::vector<Node*> nodes_;
  // In how many conditionals and loops nodes are added.
  int depth_ = 0;
  std::set<const Node*> in_frames_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_RANDOM_GRAPH_H_
