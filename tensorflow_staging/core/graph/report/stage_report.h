// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REPORT_STAGE_REPORT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REPORT_STAGE_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/partition/regions.h"

namespace tensorflow {
namespace staging {

// Reports to users how SmartStage divides a graph. The report is plain data
// that outlives the graph. The order of everything in it depends only on the
// graph.
struct StageReport {
  struct Tensor {
    std::string name;
    DataType dtype;
    // As far as TensorFlow's shape functions can infer it.
    PartialTensorShape shape;
  };

  // A node that is in no stage.
  struct Outside {
    std::string name;
    std::string op;
    // The reason, as ReasonText gives it.
    std::string why;
  };

  // An iterator that a stage reads, and the nodes outside the stage that may
  // read it, too.
  struct Iterator {
    std::string name;
    std::string op;
    std::vector<std::string> other_readers;
  };

  // A variable or a table that a stage reads, and the nodes outside the stage
  // that may change it while the program trains.
  struct State {
    std::string name;
    std::string op;
    std::vector<std::string> changers;
  };

  struct Stage {
    std::string name;
    // Whether this is a manual stage.
    bool by_hand = false;
    // The sources that SmartStage found. The source of a manual stage is its
    // Take, because the Take yields the records.
    std::vector<std::string> sources;
    // The nodes of the region, each after its inputs, except the Take of a
    // manual stage: it stays in the step. Empty for a manual stage to which
    // SmartStage adds nothing.
    std::vector<std::string> nodes;
    // The tensors of the record that the step needs.
    std::vector<Tensor> boundary;
    // The elements of sources that the record also keeps, so that a run can
    // fetch any tensor.
    std::vector<Tensor> elements;
    // What the stage reads that the rest of the program uses, too; empty for a
    // stage of lookups.
    std::vector<Iterator> iterators;
    std::vector<State> changing;
    // The nodes outside all stages that directly use a node of this one.
    std::vector<Outside> outside;
    // For a stage of lookups: the variables in which it looks up, and of how
    // many steps it may miss the updates.
    std::vector<std::string> variables;
    int64_t stale_steps = 0;
  };

  // How many nodes are in no stage for one reason. Nodes that depend on
  // variables, for example, have one reason, whichever variables these are.
  struct Reason {
    int nodes = 0;
    // The first of these nodes.
    Outside example;
    // The nodes that the reason is about, such as the variables; the first of
    // them is that of `example`. Empty if the reason is about the node itself,
    // or about no particular node.
    std::vector<std::string> about;
  };

  // A reason that some nodes have in common.
  struct Why {
    // The reason is about no particular node, or each node's reason is about
    // the node itself.
    static constexpr int kNothing = -1;
    static constexpr int kItself = -2;

    // As in Outside.
    std::string text;
    // An index into `nodes`, kNothing or kItself.
    int about = kNothing;
    // As AdviceText gives it.
    std::string advice;
  };

  // The side of a node that is in no stage.
  static constexpr int kStep = -1;
  // The node depends on no source, so that both sides use it.
  static constexpr int kShared = -2;
  // The node is a control op of a manual stage: it runs when the stage starts
  // and stops, neither ahead of the step nor in it.
  static constexpr int kControl = -3;
  // The node does its work once, before the first step (run_once.h).
  static constexpr int kOnce = -4;

  struct GraphNode {
    std::string name;
    std::string op;
    // The index of a stage, kStep, kShared, kControl or kOnce. Nodes that lead
    // to a Put of a manual stage belong to that stage, except variables and
    // tables, which hold what the step uses, too.
    int side = kStep;
    // The reason, as an index into `whys`; -1 for a node that runs ahead.
    int why = -1;
    // Whether the node stays in the step whatever it depends on, although its
    // reason may be about another node.
    bool step_only = false;
  };

  // An edge from an output of one node to another node. `src` and `dst` are
  // indices into `nodes`.
  struct GraphEdge {
    int src = 0;
    // -1 for a control edge.
    int src_output = 0;
    int dst = 0;
  };

  std::vector<Stage> stages;
  // The sources that are in no stage, and the reasons.
  std::vector<Outside> unstaged_sources;
  // The reasons of all nodes of the step and of the shared ones, most frequent
  // first.
  std::vector<Reason> reasons;

  // The whole graph.
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::vector<Why> whys;
};

// What a report considers.
struct ReportOptions {
  // Whether SmartStage stages nodes between a source and the step.
  bool smart_stage = true;
  // The preferred name of its stages, and what their records carry, as for
  // StagePlan.
  std::string name;
  RecordContent content = RecordContent::kElements;
  // Of how many steps the lookups that run ahead may miss the updates; 0 if
  // none runs ahead.
  int64_t stale_steps = 0;
};

// Sets `*report` to the stages that a session would have for `graph`. Returns
// the errors of RewriteStages.
Status ReportStages(const Graph& graph, const ReportOptions& options,
                    StageReport* report);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REPORT_STAGE_REPORT_H_
