// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REPORT_STAGE_REPORT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REPORT_STAGE_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// What SmartStage makes of a graph, told to people: plain data that outlives
// the graph. Everything is in an order that depends on the graph alone.
struct StageReport {
  struct Tensor {
    std::string name;
    DataType dtype;
    // As far as TensorFlow's shape functions tell it.
    PartialTensorShape shape;
  };

  // A node that is not staged.
  struct Outside {
    std::string name;
    std::string op;
    // ReasonText.
    std::string why;
  };

  struct Stage {
    std::string name;
    // Whether tf.staged made it.
    bool by_hand = false;
    // What SmartStage finds: of a stage by hand the Take, as it is that which
    // hands on records.
    std::vector<std::string> sources;
    // What SmartStage has run ahead, sources included, each after its inputs;
    // empty for a stage by hand to which nothing is added.
    std::vector<std::string> nodes;
    // The record.
    std::vector<Tensor> boundary;
    // The nodes of the step that use the stage: the first ones outside.
    std::vector<Outside> outside;
  };

  // How many nodes are not staged for one reason.
  struct Reason {
    int nodes = 0;
    // The first of them.
    Outside example;
  };

  // Where a node runs, besides the numbers of stages.
  static constexpr int kStep = -1;
  // Depends on no source of records, so that it is on both sides alike.
  static constexpr int kShared = -2;

  struct GraphNode {
    std::string name;
    std::string op;
    // The index of a stage, kStep or kShared. What leads to the Put of a stage
    // by hand counts to that stage.
    int place = kStep;
  };

  // From an output of one node to another node; both by index.
  struct GraphEdge {
    int src = 0;
    // -1 is a control edge.
    int src_output = 0;
    int dst = 0;
  };

  std::vector<Stage> stages;
  // Sources that no stage has, and why.
  std::vector<Outside> unstaged_sources;
  // The reasons of all nodes that are in no stage, the most frequent first.
  std::vector<Reason> reasons;

  // The graph.
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
};

// What the session of a configuration with SmartStage makes of `graph`. `name`
// is the wish for the name of its stages, as for StagePlan.
StageReport ReportStages(const Graph& graph, const std::string& name);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REPORT_STAGE_REPORT_H_
