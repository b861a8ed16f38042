// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_FLAT_STEP_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_FLAT_STEP_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/draw.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {

// A step as a graph for the partition of sessions: the nodes of the step and of
// the functions that it calls, with what a partition has to know of them and
// their ops do not show. Nothing runs this graph. Besides these nodes it has
//
//   a source         of records, for which all reads of iterators and all draws
//                    from generators wait: they run once for each record, and a
//                    step that reads several iterators reads all of them
//   marked nodes     for the outputs and the control outputs: they are always
//                    needed
//   two for a call   one before the nodes of its function, and one after them
class FlatStep {
 public:
  // `inputs` are those of the root. `library` must outlive this object. `loop`,
  // a node of the root or null, counts as no user of the iterators: it takes
  // records of its own.
  static Status Create(const CallSite& root,
                       const std::vector<StepInput>& inputs,
                       const FunctionLibraryDefinition& library,
                       const Node* loop, std::unique_ptr<FlatStep>* flat);

  const Graph& graph() const { return graph_; }

  // The node of the flat graph for a node of a site; null for calls that are
  // sites and for their parameters and results.
  const Node* Find(const SiteNode& node) const;
  // The node of a site for a node of the flat graph. Its `node` is null if
  // there is none.
  SiteNode Original(const Node& flat) const;
  // The output of a node of the flat graph that is the tensor of a site, looked
  // up through calls.
  std::pair<const Node*, int> Resolve(const CallSite& site, const Node& node,
                                      int output) const;

  // The nodes that read iterators by next().
  const std::vector<SiteNode>& reads() const { return reads_; }

  // What draws from the state that is input `index` of the step.
  const std::vector<Draw>& DrawsOf(int index) const { return draws_[index]; }

  // The roles of the inputs, and of other nodes whose ops do not show them.
  const GivenRoles& roles() const { return roles_; }

 private:
  FlatStep(const FunctionLibraryDefinition& library, const Node* loop)
      : graph_(library), loop_(loop) {}

  void FindDrawsAndReads(const CallSite& site,
                         const std::vector<StepInput>& inputs);
  // The index of the step's input that is input `input` of `node`, or -1.
  int StepInputOf(const CallSite& site, const Node& node, int input) const;
  Status AddNodes(const CallSite& site, const std::string& scope,
                  const std::vector<StepInput>& inputs);
  // Adds a node with the name `name` that stands for a node of a site.
  Status Add(const SiteNode& original, const std::string& name, Node** added);
  RoleAndReason RoleOfInput(int index, InputKind kind) const;
  // Whether a node runs once for each record even if it depends on no data.
  bool AwaitsRecord(const SiteNode& original) const;
  Status AddEdges(const CallSite& site);
  // Adds a control edge from what stands for a node of a site.
  void AddControlEdge(const CallSite& site, const Node& from, Node* to);
  Status AddOutputs(const CallSite& root, const std::vector<StepInput>& inputs);

  Graph graph_;
  const Node* const loop_;
  Node* source_ = nullptr;
  GivenRoles roles_;
  std::map<SiteNode, Node*> nodes_;
  std::vector<SiteNode> originals_;
  // The nodes that come before and after those of a call.
  std::map<const CallSite*, std::pair<Node*, Node*>> ends_;
  // By input of the step.
  std::vector<std::vector<Draw>> draws_;
  std::vector<SiteNode> reads_;
  std::set<SiteNode> reads_and_draws_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_FLAT_STEP_H_
