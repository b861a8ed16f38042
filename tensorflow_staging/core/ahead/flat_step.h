// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_FLAT_STEP_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_FLAT_STEP_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/call_sites.h"
#include "tensorflow_staging/core/ahead/draw.h"
#include "tensorflow_staging/core/ahead/step_input.h"

namespace tensorflow {
namespace staging {

// A node of a site.
struct SiteNode {
  const CallSite* site = nullptr;
  const Node* node = nullptr;

  bool operator==(const SiteNode& other) const {
    return site == other.site && node == other.node;
  }
  bool operator<(const SiteNode& other) const {
    return std::make_pair(site, node) < std::make_pair(other.site, other.node);
  }
};

// A step as the graph that the partition of sessions understands. Nothing runs
// this graph.
//
//   in the step                        in the flat graph
//   a call                             the nodes of its function
//   an input of the step               the op for which it stands: an iterator,
//                                      a table, a variable …
//   an output, the control outputs     marked nodes: they are always needed
//   a draw from a generator's state,   an op that runs once for each record
//   a counter's read or assignment
//   a loop or a conditional with       itself, with a constant as the state: so
//   such draws                         it depends on no variable
//   a read of an iterator, where the   an op that runs once for each record,
//   step has several                   behind a source of its own
//   a seeded draw, whose kernel has    a marked node: it stays in the step, so
//   the state                          that records that are dropped draw
//                                      nothing
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

 private:
  FlatStep(const FunctionLibraryDefinition& library, const Node* loop)
      : graph_(library), loop_(loop) {}

  Status AddNodes(const CallSite& site, const std::string& scope,
                  const std::vector<StepInput>& inputs);
  Status AddEdges(const CallSite& site);
  // Adds what stands for an iterator as an input of the loop.
  Status AddLoopInput(const Node** added);
  Status AddInput(const Node& arg, const StepInput& input,
                  const CallSite& root);
  // Adds a call of Python, which runs once for each record.
  Status AddCallOfPython(const std::string& name, const DataTypeVector& inputs,
                         const DataTypeVector& outputs, Node** added);
  // Adds `def` behind such a call.
  Status AddCallBefore(const DataTypeVector& inputs, DataType output,
                       NodeDef def, Node** added);
  // Adds what stands for a node of calls_of_python_: such a call, and behind it,
  // if `node` yields anything, a node that has the static shapes.
  Status AddOncePerRecord(const Node& node, const std::string& name,
                          Node** added);
  Status AddDraw(const Node& node, const std::string& name, Node** added);
  Status AddCounterRead(const Node& node, const std::string& name,
                        Node** added);
  Status AddRead(const Node& node, const std::string& name, Node** added);
  // Adds the source for which several reads stand.
  Status AddSource();
  // Adds a control edge from what stands for a node of a site.
  void AddControlEdge(const CallSite& site, const Node& from, Node* to);
  Status AddOutputs(const CallSite& root, const std::vector<StepInput>& inputs);
  // A draw that depends on no data runs once for each step, and so once for each
  // record. So does what must leave a call that XLA compiles.
  void LetDrawsAwaitRecords();
  void FindDrawsAndReads(const CallSite& site,
                         const std::vector<StepInput>& inputs);
  void FindLoopDraws(const CallSite& site, const Node& node,
                     const std::vector<StepInput>& inputs);
  // Forgets the draws of counters that are only read, as any variable is.
  void ForgetReads();
  // The index of the step's input that is input `input` of `node`, or -1.
  int StepInputOf(const CallSite& site, const Node& node, int input) const;
  // What stands for the states of the generators that loops draw from.
  Status AddLoopState(const Node** added);
  Status Add(NodeDef def, Node** added);

  Graph graph_;
  const Node* const loop_;
  Node* loop_input_ = nullptr;
  Node* loop_state_ = nullptr;
  std::map<SiteNode, Node*> nodes_;
  std::vector<SiteNode> originals_;
  // The nodes that come before and after those of a call.
  std::map<const CallSite*, std::pair<Node*, Node*>> ends_;
  // By input of the step.
  std::vector<std::vector<Draw>> draws_;
  // The loops that draw, and the inputs that are states.
  std::map<SiteNode, std::set<int>> loop_draws_;
  std::vector<SiteNode> reads_;
  // The nodes for which a call of Python stands.
  std::set<SiteNode> calls_of_python_;
  // Of a node for which a call of Python stands: that call, which may be the node
  // itself.
  std::map<Node*, Node*> call_before_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_FLAT_STEP_H_
