// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/give_shares.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// The edges by which an accelerator uses its share, by tensor of the record.
using UsesOfShare = std::map<int, std::vector<const Edge*>>;

// By accelerator.
Status FindUsesOfShares(const RecordUses& uses,
                        const std::vector<DeviceShare>& shares,
                        std::map<std::string, UsesOfShare>* found) {
  std::set<std::pair<std::string, int>> shared;
  for (const DeviceShare& share : shares) {
    for (const int tensor : share.tensors) shared.emplace(share.device, tensor);
  }
  // Attributes that a client has set may name one output of a stand-in twice.
  std::set<const Edge*> seen;
  for (const Carried& carried : uses.carried()) {
    std::vector<const Edge*> edges;
    TF_RETURN_IF_ERROR(uses.FindUses(carried, &edges));
    for (const Edge* edge : edges) {
      const std::string& device = edge->dst()->assigned_device_name();
      if (shared.count({device, carried.take_output}) > 0 &&
          seen.insert(edge).second) {
        (*found)[device][carried.take_output].push_back(edge);
      }
    }
  }
  return OkStatus();
}

// Adds a copy of `take`, which has its inputs, and one more output, the shares.
Status AddGivingTake(const Node& take, const std::string& name, Graph* graph,
                     Node** giving) {
  NodeDef def = take.def();
  def.set_name(name);
  def.clear_input();
  auto& attrs = *def.mutable_attr();
  attrs[kDtypesAttr].mutable_list()->add_type(DT_VARIANT);
  const auto shapes = attrs.find(kShapesAttr);
  if (shapes != attrs.end() && shapes->second.list().shape_size() > 0) {
    shapes->second.mutable_list()->add_shape();
  }
  // One for each output, if there are any.
  attrs.erase("_output_shapes");
  attrs[kOutputHostMemoryAttr].mutable_list()->add_i(take.num_outputs());
  attrs[kGivesSharesAttr].set_b(true);
  Status status;
  *giving = graph->AddNode(std::move(def), &status);
  TF_RETURN_IF_ERROR(status);
  (*giving)->set_assigned_device_name(take.assigned_device_name());
  for (const Edge* edge : take.in_edges()) {
    graph->AddEdge(edge->src(), edge->src_output(), *giving, edge->dst_input());
  }
  return OkStatus();
}

// Lets `uses`, which are on `device`, use their share of what `take` gives.
Status GiveShare(Node* take, const std::string& device, const UsesOfShare& uses,
                 Graph* graph) {
  std::vector<int> indices;
  DataTypeVector dtypes;
  for (const auto& [tensor, edges] : uses) {
    indices.push_back(tensor);
    dtypes.push_back(take->output_type(tensor));
  }
  Node* share = nullptr;
  TF_RETURN_IF_ERROR(
      NodeBuilder(graph->NewName(absl::StrCat(take->name(), "/share")),
                  kShareOp)
          .Input(take, take->num_outputs() - 1)
          .Attr(kDtypesAttr, dtypes)
          .Attr(kIndicesAttr, indices)
          .Finalize(graph, &share));
  share->set_assigned_device_name(device);
  int output = 0;
  for (const auto& [tensor, edges] : uses) {
    for (const Edge* edge : edges) MoveEdge(edge, share, output, graph);
    ++output;
  }
  return OkStatus();
}

// Replaces `take` by `giving`.
void Replace(Node* take, Node* giving, Graph* graph) {
  const std::vector<const Edge*> edges(take->out_edges().begin(),
                                       take->out_edges().end());
  for (const Edge* edge : edges) {
    MoveEdge(edge, giving, edge->src_output(), graph);
  }
  graph->RemoveNode(take);
}

Status GiveSharesOf(Node* take, bool is_function, Graph* graph) {
  std::vector<DeviceShare> shares;
  TF_RETURN_IF_ERROR(ReadShares(take->def(), take->num_outputs(), &shares));
  RecordUses uses(*graph, take);
  TF_RETURN_IF_ERROR(uses.Find());
  std::map<std::string, UsesOfShare> uses_of_shares;
  TF_RETURN_IF_ERROR(FindUsesOfShares(uses, shares, &uses_of_shares));
  if (uses_of_shares.empty()) return OkStatus();
  const std::string name =
      is_function ? take->name()
                  : graph->NewName(absl::StrCat(take->name(), "/giving"));
  Node* giving = nullptr;
  TF_RETURN_IF_ERROR(AddGivingTake(*take, name, graph, &giving));
  for (const auto& [device, of_device] : uses_of_shares) {
    TF_RETURN_IF_ERROR(GiveShare(giving, device, of_device, graph));
  }
  // Nobody may be left who uses a stand-in.
  std::set<Node*> stand_ins;
  for (const Carried& carried : uses.carried()) {
    if (carried.stand_in != nullptr) stand_ins.insert(carried.stand_in);
  }
  for (Node* stand_in : stand_ins) {
    if (stand_in->out_edges().empty()) graph->RemoveNode(stand_in);
  }
  Replace(take, giving, graph);
  return OkStatus();
}

// Runs on the graphs of runs and of functions. The passes before it know the Takes
// of a run by their names.
class GiveSharesPass : public GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr) return OkStatus();
    return GiveShares(options.is_function_graph, options.graph->get());
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 7,
                      GiveSharesPass);

}  // namespace

Status GiveShares(bool is_function, Graph* graph) {
  std::vector<Node*> takes;
  for (Node* node : graph->op_nodes()) {
    // In a large graph, almost every node ends here. There are Takes of sessions
    // and of functions.
    if (!absl::EndsWith(node->type_string(), "BufferTake")) continue;
    if (HasShares(node->def()) && node->num_outputs() > 0) {
      takes.push_back(node);
    }
  }
  for (Node* take : takes) {
    TF_RETURN_IF_ERROR(GiveSharesOf(take, is_function, graph));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
