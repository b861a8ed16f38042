// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_CONTROL_FLOW_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_TESTING_CONTROL_FLOW_GRAPH_H_

#include <string>
#include <vector>

#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {

// Adds a conditional of version 1 to a graph, with the nodes that tf.cond adds:
//
//   <name>/pivot            a Switch of the predicate
//   <name>/switch_f, _t     its outputs; nodes without inputs wait for them
//   <name>/pred             the predicate of the other Switches
class TestConditional {
 public:
  using Out = TestGraph::Out;

  TestConditional(const std::string& name, Out predicate, TestGraph* graph)
      : name_(name), graph_(*graph) {
    Node* pivot = graph_.Switch(name + "/pivot", predicate, predicate);
    pivots_[0] = graph_.Identity(name + "/switch_f", Out(pivot, 0));
    pivots_[1] = graph_.Identity(name + "/switch_t", Out(pivot, 1));
    predicate_ = graph_.Identity(name + "/pred", predicate);
  }

  Node* pivot(bool branch) const { return pivots_[branch]; }

  // Returns `value` as one branch sees it.
  Out In(bool branch, Out value) {
    const std::string name = strings::StrCat(name_, "/switch", switches_++);
    return {graph_.Switch(name, value, predicate_), branch};
  }

  // Returns a constant in one branch.
  Node* Const(bool branch, const std::string& name, int64_t value) {
    Node* node = graph_.Const(name, value);
    graph_.AddControl(pivots_[branch], node);
    return node;
  }

  // Returns a result, <name>/merge<i>.
  Node* Result(Out if_false, Out if_true) {
    const std::string name = strings::StrCat(name_, "/merge", results_++);
    return graph_.Merge(name, {if_false, if_true});
  }

 private:
  const std::string name_;
  TestGraph& graph_;
  Node* pivots_[2];
  Node* predicate_;
  int switches_ = 0;
  int results_ = 0;
};

// Adds a loop of version 1 to a graph, with the nodes that tf.while_loop adds.
// It runs while its first variable is less than `limit`, a value outside.
//
//   <name>/enter<i> --> merge<i> --> switch<i> --> exit<i>
//                         ^             |
//                       next<i> <- .. body<i>
class TestLoop {
 public:
  using Out = TestGraph::Out;
  using Outs = TestGraph::Outs;

  TestLoop(const std::string& name, const Outs& initial, Out limit,
           TestGraph* graph)
      : name_(name), graph_(*graph) {
    for (const Out& value : initial) {
      Node* enter = Enter("enter", value, /*is_constant=*/false);
      merges_.push_back(graph_.Merge(Name("merge"), {enter, enter}));
      ++variables_;
    }
    Node* less = graph_.Less(name_ + "/less", merges_[0], Invariant(limit));
    NodeBuilder builder(name_ + "/cond", "LoopCond");
    builder.Input(less);
    Node* condition = graph_.Finalize(&builder);
    for (variables_ = 0; variables_ < initial.size(); ++variables_) {
      switches_.push_back(
          graph_.Switch(Name("switch"), merges_[variables_], condition));
      body_.push_back(
          graph_.Identity(Name("body"), Out(switches_[variables_], 1)));
    }
  }

  // The variables, as the body sees them. Nodes of the body that have no inputs
  // wait for the first of them.
  const std::vector<Node*>& body() const { return body_; }

  // Returns a value from outside, as the body and the condition see it.
  Node* Invariant(Out value) {
    return Enter(strings::StrCat("invariant", invariants_++), value,
                 /*is_constant=*/true);
  }

  // Ends the loop with the next values of its variables. Returns its Exits.
  std::vector<Node*> Close(const Outs& next) {
    std::vector<Node*> exits;
    for (variables_ = 0; variables_ < next.size(); ++variables_) {
      NodeBuilder builder(Name("next"), "NextIteration");
      builder.Input(next[variables_]);
      Node* merge = merges_[variables_];
      const Edge* placeholder = nullptr;
      TF_CHECK_OK(merge->input_edge(1, &placeholder));
      graph_.get()->RemoveEdge(placeholder);
      graph_.get()->AddEdge(graph_.Finalize(&builder), 0, merge, 1);
      NodeBuilder exit(Name("exit"), "Exit");
      exit.Input(switches_[variables_], 0);
      exits.push_back(graph_.Finalize(&exit));
    }
    return exits;
  }

 private:
  std::string Name(const std::string& kind) const {
    return strings::StrCat(name_, "/", kind, variables_);
  }

  Node* Enter(const std::string& kind, Out value, bool is_constant) {
    NodeBuilder builder(
        is_constant ? strings::StrCat(name_, "/", kind) : Name(kind), "Enter");
    builder.Input(value)
        .Attr("frame_name", name_)
        .Attr("is_constant", is_constant);
    return graph_.Finalize(&builder);
  }

  const std::string name_;
  TestGraph& graph_;
  std::vector<Node*> merges_;
  std::vector<Node*> switches_;
  std::vector<Node*> body_;
  size_t variables_ = 0;
  int invariants_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_CONTROL_FLOW_GRAPH_H_
