// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_RANDOM_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_TESTING_RANDOM_GRAPH_H_

#include <random>
#include <string>
#include <vector>

#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {

// Builds a random graph of everything that matters to a partition: iterators
// that are read once or several times, by one op or by two, constants, draws,
// tables, variables of both kinds, placeholders, marked nodes, manual stages,
// and data and control edges between them. Equal seeds give equal graphs.
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
    return {node, Below(node->num_outputs())};
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

  void AddAny() {
    switch (Below(22)) {
      case 0:
        return AddConst();
      case 1:
        return AddSource();
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
  std::vector<Node*> nodes_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_RANDOM_GRAPH_H_
