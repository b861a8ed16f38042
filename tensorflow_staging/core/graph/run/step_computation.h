// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_STEP_COMPUTATION_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_STEP_COMPUTATION_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/run/construct_nodes.h"
#include "tensorflow_staging/core/graph/run/fed_ahead.h"
#include "tensorflow_staging/core/graph/run/name_table.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// Finds the nodes of regions that the step has to compute for one run, from
// the elements that the records carry:
//   * nodes whose outputs the run asks for and that no record carries;
//   * nodes that depend on a tensor that the run feeds: the records were
//     computed without the fed value. The stage is unstaged for this run. The
//     step computes what it needs of the region, as it would without the stage.
//     It reads a source of a manual stage if it feeds the string of the handle;
//   * all that the run needs of a stage that joins sources, if it needs only some
//     of the sources: with a record, it would advance the others, too. The stage
//     is unstaged for this run as well, and the step reads the sources beside it.
class StepComputation {
 public:
  // The arguments must outlive this object. `find` and `marks` are those of
  // `graph`.
  StepComputation(const Graph& graph, const NodeFinder& find,
                  const NameTable& marks, const RunRequest& run);

  StepComputation(const StepComputation&) = delete;
  StepComputation& operator=(const StepComputation&) = delete;

  // Finds the nodes. Call this once, before the other functions.
  //
  // Returns FAILED_PRECONDITION if the run asks for a tensor that is not
  // carried and cannot be computed again, such as a random number, or for the
  // elements of only some of the sources whose elements the record of a manual
  // stage or of a chain joins. Returns INVALID_ARGUMENT if such a tensor is needed
  // because the run feeds another.
  Status Find();

  // Whether the run can execute the graph as it is.
  bool empty() const {
    return computed_.empty() && fed_originals_.empty() && awaited_.empty();
  }

  // Adds the nodes that Find found to `copy`, a copy of the graph whose marks
  // are `marks`: nodes with the original names that replace the stand-ins.
  //
  // Returns INVALID_ARGUMENT, and leaves `copy` unusable, if marks connect
  // nodes of different types.
  Status AddTo(const NameTable& marks, Graph* copy) const;

 private:
  struct Item {
    const Node* node;     // A node of the graph, or
    std::string compute;  // the original name of a node to compute.
  };

  // Returns the stages that can be unstaged and whose records join sources.
  std::set<std::string> JoinsOfSmartStage() const;
  // Returns those of beside_ of which the run needs some of the sources, but not
  // all. Call this when the nodes of the run were found with beside_.
  std::set<std::string> PartlyNeeded() const;
  // Finds the nodes, given beside_.
  Status FindNodes();
  // Whether the step computes all that the run needs of the region of the node
  // with this name.
  bool IsBesideStage(const std::string& name) const;

  // Returns the stand-in that passes on the tensor, or null if the step has to
  // compute it.
  const Node* Available(const std::string& name, int output) const;

  // Finds what the nodes in to_visit_ need, after the run has needed `wanted`
  // with the result `status`.
  Status Visit(const std::string& wanted, Status status);
  Status NeedWanted(const TensorId& tensor);
  Status NeedTarget(const std::string& name);
  Status NeedInputsOf(const Node& node);
  Status NeedInputsOfComputed(const std::string& name);
  void NeedNode(const Node& node);
  Status NeedTensor(const std::string& name, int output);
  // Whether the step can wait for what the clone `name` waits for by itself, as a
  // fed tensor takes the place of some of that.
  bool WaitsForFed(const std::string& name);
  // Makes the run wait for what the clone `name` waited for.
  Status NeedControl(const std::string& name);
  Status Compute(const std::string& name, int output);
  // Returns the error for a tensor that the step needs and cannot compute.
  Status UnavailableError(const std::string& name, int output,
                          const std::string& stage) const;
  // Returns the stages of whose records the run needs more than stand-ins of
  // their regions: nodes of the step use their Takes.
  std::set<std::string> StagesTakenDirectly() const;
  // The nodes that AddTo has added, and the nodes of the graph that a copy has
  // under their names.
  using Added = std::map<std::string, Node*>;
  using Originals = absl::flat_hash_map<std::string, Node*>;
  Status AddNodes(const NameTable& marks, Graph* copy, Added* added) const;
  Status Connect(const NameTable& marks, const Originals& originals,
                 const Added& added, Graph* copy) const;
  Status CheckNothingIsDrawnTwice() const;
  Status CheckSourcesAdvanceTogether() const;

  const NodeFinder& find_;
  const NameTable& marks_;
  const RunRequest& run_;
  ConstructNodes construct_nodes_;
  const FedAhead fed_ahead_;
  NodeRoles roles_;
  // The names of the sources of each stage: of their stand-ins.
  std::map<std::string, std::set<std::string>> sources_;
  // The stages with stand-ins, by their Takes.
  std::map<const Node*, std::string> takes_;
  // The stages that are unstaged because the run needs only some of their
  // sources.
  std::set<std::string> beside_;

  std::vector<Item> to_visit_;
  absl::flat_hash_set<const Node*> needed_;
  std::set<std::string> computed_;
  // Those of them that are not repeatable, with an output that the run needs,
  // by stage.
  std::map<std::string, std::pair<std::string, int>> drawn_;
  // The fed nodes of regions that the run does not need otherwise.
  std::set<std::string> fed_originals_;
  // The nodes that the run only waits for, and that have no stand-in.
  std::set<std::string> awaited_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_STEP_COMPUTATION_H_
