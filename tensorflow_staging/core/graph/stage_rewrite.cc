// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/stage_rewrite.h"

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/hash.h"
#include "tensorflow_staging/core/graph/boundary_shapes.h"
#include "tensorflow_staging/core/graph/pack_guard.h"
#include "tensorflow_staging/core/graph/stage_on_cpu.h"
#include "tensorflow_staging/core/graph/stage_restart.h"
#include "tensorflow_staging/core/graph/stand_ins.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kColocationAttr[] = "_class";
constexpr char kColocationPrefix[] = "loc:@";
constexpr char kStreamAttr[] = "_stream_id";
constexpr char kCloneScope[] = "staged";

using NodeOut = NodeBuilder::NodeOut;

// `node` as it may be changed: the plan was made of the same graph.
Node* Mutable(const Node* node, Graph* graph) {
  return graph->FindNodeId(node->id());
}

// A container for buffers that no other session, and no other cut of the graph,
// shares: a record must not reach a Take that expects another one.
std::string Container(const std::string& session, const std::string& cut) {
  return absl::StrCat(
      "staging.",
      absl::Hex(Hash64(absl::StrCat(session, "|", cut)), absl::kZeroPad16));
}

void SetContainer(const std::string& container, Node* node) {
  node->ClearAttr("container");
  node->AddAttr("container", container);
}

// An edge that outlives its source.
struct OutEdge {
  int src_output;
  Node* dst;
  int dst_input;
};

// Rewrites one stage that has a region.
class RegionRewriter {
 public:
  RegionRewriter(const PlannedStage& stage, const RewriteOptions& options,
                 Graph* graph)
      : stage_(stage),
        region_(*stage.region),
        options_(options),
        graph_(graph) {
    staged_.insert(region_.nodes.begin(), region_.nodes.end());
    std::string cut = stage.name;
    for (const StagedTensor& tensor : region_.boundary) {
      absl::StrAppend(&cut, "|", tensor.name(), "|",
                      DataTypeString(DtypeOf(tensor)));
    }
    container_ = Container(options.session, cut);
  }

  Status Run() {
    const std::vector<PartialTensorShape> shapes =
        BoundaryShapes(*graph_, region_);
    if (stage_.by_hand()) {
      for (size_t i = 0; i < stage_.puts.size(); ++i) {
        // Sources of one stage are cloned apart, as each is run by itself.
        TF_RETURN_IF_ERROR(ExtendPut(
            Mutable(stage_.puts[i], graph_),
            stage_.NodeName(i == 0 ? kCloneScope
                                   : absl::StrCat(kCloneScope, "_", i))));
      }
      for (const Node* op : stage_.control_ops) {
        SetContainer(container_, Mutable(op, graph_));
      }
    } else {
      TF_RETURN_IF_ERROR(MakePut());
      TF_RETURN_IF_ERROR(MakeControlOps());
    }
    TF_RETURN_IF_ERROR(MakeTake(shapes));
    return ReplaceRegion();
  }

  // The nodes that depend on no other node that runs ahead.
  const std::vector<Node*>& roots() const { return roots_; }
  const std::vector<Node*>& puts() const { return puts_; }
  const Node* take() const { return take_; }

 private:
  // Where the outputs of a staged node come from in one run of the stage.
  using Clones = absl::flat_hash_map<const Node*, Node*>;

  static DataType DtypeOf(const StagedTensor& tensor) {
    return tensor.node->output_type(tensor.index);
  }

  NodeOut Ahead(const Clones& clones, const Node* old_put,
                const StagedTensor& tensor) const {
    if (tensor.node == stage_.take) {
      const Edge* edge = nullptr;
      TF_CHECK_OK(old_put->input_edge(tensor.index, &edge));
      return NodeOut(edge->src(), edge->src_output());
    }
    return NodeOut(clones.at(tensor.node), tensor.index);
  }

  // Clones the region under `scope`. `old_put` is the Put whose inputs take the
  // place of the Take's outputs, if the stage is by hand.
  Status CloneRegion(const std::string& scope, const Node* old_put,
                     Clones* clones) {
    for (const Node* node : region_.nodes) {
      if (node == stage_.take) continue;
      NodeDef def = node->def();
      def.clear_input();
      def.set_name(absl::StrCat(scope, "/", node->name()));
      // Errors name the node that the user knows.
      def.mutable_experimental_debug_info()->clear_original_node_names();
      def.mutable_experimental_debug_info()->add_original_node_names(
          node->name());
      KeepColocationWithin(scope, &def);
      if (options_.on_cpu) def.set_device(CpuOfTask(*node));
      if (options_.stream_id != 0 && !stage_.by_hand()) {
        AddNodeAttr(kStreamAttr, options_.stream_id, &def);
      }
      Status status;
      Node* clone = graph_->AddNode(std::move(def), &status);
      TF_RETURN_IF_ERROR(status);
      (*clones)[node] = clone;
      bool root = true;
      std::vector<int> taken_inputs;
      for (const Edge* edge : node->in_edges()) {
        const Node* input = edge->src();
        if (!input->IsOp()) continue;
        if (input == stage_.take) {
          // The Put's inputs are there whenever the stage runs, so that nothing
          // is left to wait for.
          if (edge->IsControlEdge()) continue;
          const NodeOut out =
              Ahead(*clones, old_put, {input, edge->src_output()});
          graph_->AddEdge(out.node, out.index, clone, edge->dst_input());
          taken_inputs.push_back(edge->dst_input());
          taken_inputs.push_back(edge->src_output());
        } else if (staged_.contains(input)) {
          graph_->AddEdge(clones->at(input), edge->src_output(), clone,
                          edge->dst_input());
          root = false;
        } else {
          graph_->AddEdge(Shared(edge->src(), scope), edge->src_output(), clone,
                          edge->dst_input());
        }
      }
      MarkClone(stage_.name, node->name(), taken_inputs, clone);
      if (root) roots_.push_back(clone);
    }
    return OkStatus();
  }

  // A node that both sides use, as the clones are to use it.
  Node* Shared(Node* node, const std::string& scope) {
    return options_.on_cpu ? CopyToCpu(node, scope, graph_, &copies_) : node;
  }

  // What was colocated with a staged node is colocated with its clone.
  void KeepColocationWithin(const std::string& scope, NodeDef* def) const {
    auto it = def->mutable_attr()->find(kColocationAttr);
    if (it == def->mutable_attr()->end()) return;
    AttrValue kept;
    for (const std::string& entry : it->second.list().s()) {
      absl::string_view name = entry;
      const bool staged = absl::ConsumePrefix(&name, kColocationPrefix) &&
                          StagedNames().contains(name);
      if (staged) {
        kept.mutable_list()->add_s(
            absl::StrCat(kColocationPrefix, scope, "/", name));
      } else if (!options_.on_cpu) {
        kept.mutable_list()->add_s(entry);
      }
    }
    if (kept.list().s().empty()) {
      def->mutable_attr()->erase(it);
    } else {
      it->second = std::move(kept);
    }
  }

  const absl::flat_hash_set<std::string>& StagedNames() const {
    if (staged_names_.empty()) {
      for (const Node* node : region_.nodes) {
        if (node != stage_.take) staged_names_.insert(node->name());
      }
    }
    return staged_names_;
  }

  // The Put's inputs and what it waits for: the record, and staged nodes that
  // the step waits for.
  void AddRecord(const Clones& clones, const Node* old_put,
                 NodeBuilder* builder) const {
    std::vector<NodeOut> record;
    for (const StagedTensor& tensor : region_.boundary) {
      record.push_back(Ahead(clones, old_put, tensor));
    }
    builder->Input(record);
    for (const Node* node : region_.control_boundary) {
      if (node != stage_.take) builder->ControlInput(clones.at(node));
    }
  }

  Status MakePut() {
    Clones clones;
    TF_RETURN_IF_ERROR(
        CloneRegion(stage_.NodeName(kCloneScope), nullptr, &clones));
    device_ = CpuOfTask(*region_.sources.front());
    NodeBuilder builder(stage_.NodeName("TensorBufferPut"), "TensorBufferPut");
    AddRecord(clones, nullptr, &builder);
    builder.Attr("timeout_millis", options_.timeout_millis).Device(device_);
    SetBuffer(&builder);
    puts_.push_back(nullptr);
    return builder.Finalize(graph_, &puts_.back());
  }

  // Puts a larger record in the place of the one that tf.staged was given.
  Status ExtendPut(Node* old_put, const std::string& scope) {
    Clones clones;
    TF_RETURN_IF_ERROR(CloneRegion(scope, old_put, &clones));
    NodeBuilder builder(old_put->name(), "TensorBufferPut");
    AddRecord(clones, old_put, &builder);
    for (const Edge* edge : old_put->in_edges()) {
      if (edge->IsControlEdge() && edge->src()->IsOp()) {
        builder.ControlInput(edge->src());
      }
    }
    for (const Edge* edge : stage_.take->in_edges()) {
      if (staged_.contains(edge->src())) {
        builder.ControlInput(clones.at(edge->src()));
      }
    }
    CopyAttrs(*old_put, &builder);
    builder.Attr("container", container_);
    Node* put = nullptr;
    TF_RETURN_IF_ERROR(builder.Finalize(graph_, &put));
    for (const OutEdge& edge : OutEdgesOf(*old_put)) {
      graph_->AddControlEdge(put, edge.dst);
    }
    graph_->RemoveNode(old_put);
    puts_.push_back(put);
    return OkStatus();
  }

  Status MakeTake(const std::vector<PartialTensorShape>& shapes) {
    DataTypeVector dtypes;
    for (const StagedTensor& tensor : region_.boundary) {
      dtypes.push_back(DtypeOf(tensor));
    }
    NodeBuilder builder(stage_.by_hand()
                            ? absl::StrCat(stage_.take->name(), "/record")
                            : stage_.NodeName("TensorBufferTake"),
                        "TensorBufferTake");
    if (stage_.by_hand()) {
      CopyAttrs(*stage_.take, &builder);
      builder.Attr("container", container_);
      for (const Edge* edge : stage_.take->in_edges()) {
        // What runs ahead has run when the record is there.
        if (edge->src()->IsOp() && !staged_.contains(edge->src())) {
          builder.ControlInput(edge->src());
        }
      }
    } else {
      SetBuffer(&builder);
      ColocateWithPut(&builder);
    }
    builder.Attr("dtypes", dtypes).Attr("shapes", shapes);
    shapes_ = shapes;
    TF_RETURN_IF_ERROR(builder.Finalize(graph_, &take_));
    MarkTake(stage_.name, take_);
    return OkStatus();
  }

  // The ops that the runner steers the buffer with.
  Status MakeControlOps() {
    Node* code = nullptr;
    TF_RETURN_IF_ERROR(MakeConstant("error_code", Tensor(int32{0}), &code));
    Node* message = nullptr;
    TF_RETURN_IF_ERROR(
        MakeConstant("error_message", Tensor(tstring()), &message));
    for (const char* op : {"TensorBufferCancel", "TensorBufferResume",
                           "TensorBufferClose", "TensorBufferSize"}) {
      NodeBuilder builder(stage_.NodeName(op), op);
      if (absl::string_view(op) == "TensorBufferClose") {
        builder.Input(code).Input(message);
      }
      SetBuffer(&builder);
      ColocateWithPut(&builder);
      Node* made = nullptr;
      TF_RETURN_IF_ERROR(builder.Finalize(graph_, &made));
    }
    return OkStatus();
  }

  Status MakeConstant(const char* suffix, const Tensor& value, Node** node) {
    return NodeBuilder(stage_.NodeName(suffix), "Const")
        .Attr("dtype", value.dtype())
        .Attr("value", value)
        .Device(device_)
        .Finalize(graph_, node);
  }

  void SetBuffer(NodeBuilder* builder) const {
    builder->Attr("shared_name", stage_.name)
        .Attr("container", container_)
        .Attr("capacity", options_.capacity);
  }

  void ColocateWithPut(NodeBuilder* builder) const {
    builder->Attr(kColocationAttr,
                  std::vector<std::string>{
                      absl::StrCat(kColocationPrefix, puts_.front()->name())});
    builder->Device(device_);
  }

  // All but the types of the record and the container, which the caller sets.
  static void CopyAttrs(const Node& from, NodeBuilder* builder) {
    for (const auto& [name, value] : from.attrs()) {
      if (name != "dtypes" && name != "shapes" && name != "container") {
        builder->Attr(name, value);
      }
    }
    builder->Device(from.requested_device());
  }

  std::vector<OutEdge> OutEdgesOf(const Node& node) const {
    std::vector<OutEdge> edges;
    for (const Edge* edge : node.out_edges()) {
      if (edge->dst()->IsOp() && !staged_.contains(edge->dst())) {
        edges.push_back({edge->src_output(), edge->dst(), edge->dst_input()});
      }
    }
    return edges;
  }

  // Gives every name of the region to a node of the step's side.
  Status ReplaceRegion() {
    // Outputs of the Take, by node and output.
    std::map<std::pair<const Node*, int>, int> taken;
    for (size_t i = 0; i < region_.boundary.size(); ++i) {
      taken[{region_.boundary[i].node, region_.boundary[i].index}] = i;
    }
    // A node and what takes its place; the node is gone at the end.
    std::vector<std::pair<Node*, std::vector<OutEdge>>> old_nodes;
    std::vector<Node*> new_nodes;
    for (const Node* node : region_.nodes) {
      Node* stand_in = nullptr;
      TF_RETURN_IF_ERROR(MakeStandIn(*node, taken, &stand_in));
      new_nodes.push_back(stand_in);
      old_nodes.emplace_back(Mutable(node, graph_), OutEdgesOf(*node));
    }
    for (auto& [node, edges] : old_nodes) graph_->RemoveNode(node);
    for (size_t i = 0; i < new_nodes.size(); ++i) {
      for (const OutEdge& edge : old_nodes[i].second) {
        graph_->AddEdge(new_nodes[i], edge.src_output, edge.dst,
                        edge.dst_input);
      }
    }
    return OkStatus();
  }

  Status MakeStandIn(const Node& node,
                     const std::map<std::pair<const Node*, int>, int>& taken,
                     Node** stand_in) const {
    std::vector<NodeOut> values;
    std::vector<int> indices;
    std::vector<PartialTensorShape> shapes(node.num_outputs());
    for (int i = 0; i < node.num_outputs(); ++i) {
      const auto it = taken.find({&node, i});
      if (it == taken.end()) continue;
      values.emplace_back(take_, it->second);
      indices.push_back(i);
      shapes[i] = shapes_[it->second];
    }
    std::unique_ptr<NodeBuilder> builder;
    bool is_staged_node = false;
    if (node.num_outputs() == 0) {
      builder = std::make_unique<NodeBuilder>(node.name(), "NoOp");
    } else if (node.num_outputs() == 1 && !values.empty()) {
      builder = std::make_unique<NodeBuilder>(node.name(), "Identity");
      builder->Input(values.front());
    } else {
      builder = std::make_unique<NodeBuilder>(node.name(), "StagedNode");
      builder->Input(values)
          .Attr("dtypes", node.output_types())
          .Attr("indices", indices)
          .Attr("shapes", shapes)
          .Attr("stage", stage_.name);
      is_staged_node = true;
    }
    // Whoever runs or waits for the node still advances to the next record.
    if (values.empty()) builder->ControlInput(take_);
    for (const auto& [name, value] : node.attrs()) {
      if (absl::StartsWith(name, "_")) builder->Attr(name, value);
    }
    // The placer would take a StagedNode to an accelerator, strings or not.
    const bool anywhere = node.requested_device().empty() &&
                          node.attrs().Find(kColocationAttr) == nullptr;
    builder->Device(anywhere && is_staged_node ? CpuOfTask(node)
                                               : node.requested_device());
    TF_RETURN_IF_ERROR(builder->Finalize(graph_, stand_in));
    MarkStandIn(stage_.name, OutputsUsedAhead(node), *stand_in);
    return OkStatus();
  }

  std::vector<int> OutputsUsedAhead(const Node& node) const {
    std::set<int> outputs;
    for (const Edge* edge : node.out_edges()) {
      if (!edge->IsControlEdge() && staged_.contains(edge->dst())) {
        outputs.insert(edge->src_output());
      }
    }
    return std::vector<int>(outputs.begin(), outputs.end());
  }

  const PlannedStage& stage_;
  const StagedRegion& region_;
  const RewriteOptions& options_;
  Graph* const graph_;
  absl::flat_hash_set<const Node*> staged_;
  mutable absl::flat_hash_set<std::string> staged_names_;
  CpuCopies copies_;
  std::string container_;
  std::string device_;
  std::vector<PartialTensorShape> shapes_;
  std::vector<Node*> roots_;
  std::vector<Node*> puts_;
  Node* take_ = nullptr;
};

// Leaves the buffer of a stage of tf.staged as it is, but in a container of the
// session's own, unless the graph names one: on a server, sessions share what
// has the same name.
void MoveToSession(const PlannedStage& stage, const std::string& session,
                   Graph* graph) {
  std::vector<const Node*> ops = stage.control_ops;
  ops.insert(ops.end(), stage.puts.begin(), stage.puts.end());
  ops.push_back(stage.take);
  for (const Node* op : ops) {
    std::string container;
    if (TryGetNodeAttr(op->attrs(), "container", &container) &&
        !container.empty()) {
      continue;
    }
    SetContainer(Container(session, stage.name), Mutable(op, graph));
  }
}

// Checks that no Put of `puts` waits, through any number of nodes, for a Take
// of `takes`: a stage must not wait for the step that waits for it.
Status CheckNoPutNeedsTake(const std::vector<Node*>& puts,
                           const absl::flat_hash_set<const Node*>& takes,
                           const Graph& graph) {
  const Node* needed = nullptr;
  ReverseDFSFrom(graph, std::vector<const Node*>(puts.begin(), puts.end()),
                 [&](const Node* node) {
                   if (takes.contains(node)) needed = node;
                 },
                 /*leave=*/{});
  if (needed == nullptr) return OkStatus();
  return errors::Internal("SmartStage made a stage that waits for itself, by '",
                          needed->name(),
                          "'. Nothing is wrong with the graph; please report "
                          "this, and turn do_smart_stage off meanwhile.");
}

}  // namespace

Status RewriteStages(const StagePlan& plan, const RewriteOptions& options,
                     Graph* graph) {
  std::vector<Node*> puts;
  absl::flat_hash_set<const Node*> takes;
  std::map<std::string, Node*> restarts;
  for (const PlannedStage& stage : plan.stages()) {
    Node* put = nullptr;
    std::vector<Node*> first_nodes;
    for (const Node* source : stage.gated_sources) {
      first_nodes.push_back(Mutable(source, graph));
    }
    if (options.on_cpu) MoveToCpu(stage.puts, graph);
    if (stage.region != nullptr) {
      RegionRewriter rewriter(stage, options, graph);
      TF_RETURN_IF_ERROR(rewriter.Run());
      put = rewriter.puts().front();
      puts.insert(puts.end(), rewriter.puts().begin(), rewriter.puts().end());
      takes.insert(rewriter.take());
      if (!stage.by_hand()) first_nodes = rewriter.roots();
    } else {
      put = Mutable(stage.puts.front(), graph);
      if (!options.session.empty()) {
        MoveToSession(stage, options.session, graph);
      }
    }
    std::vector<Node*> initializers;
    for (const Node* initializer : stage.initializers) {
      initializers.push_back(Mutable(initializer, graph));
    }
    TF_RETURN_IF_ERROR(AddRestart(stage.name, *put, first_nodes, initializers,
                                  graph, &restarts[stage.name]));
  }
  for (const PlannedStage& stage : plan.stages()) {
    for (const std::string& before : stage.stages_before) {
      // A stage that waits for records has to come to its Begin first.
      if (Node* restart = restarts[before]; restart != nullptr) {
        graph->AddControlEdge(restarts[stage.name], restart);
      }
    }
  }
  TF_RETURN_IF_ERROR(GuardPacksOfTaken(graph));
  FixupSourceAndSinkEdges(graph);
  return CheckNoPutNeedsTake(puts, takes, *graph);
}

}  // namespace staging
}  // namespace tensorflow
