// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/flat_step.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/loop_draws.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsRead(const Node& node) {
  return node.type_string() == "IteratorGetNext" ||
         node.type_string() == "IteratorGetNextSync";
}

// Whether a stateful kernel with these attributes has a state that decides what
// it yields next.
bool HasSeed(AttrSlice attrs) {
  int64_t seed = 0, seed2 = 0;
  TryGetNodeAttr(attrs, "seed", &seed);
  TryGetNodeAttr(attrs, "seed2", &seed2);
  return seed != 0 || seed2 != 0;
}

// Whether any function that `node` calls, as the branch of a conditional for
// example, contains a seeded draw.
bool CallsSeededDraw(const NodeDef& def,
                     const FunctionLibraryDefinition& library, int depth) {
  for (const NameAttrList& called : FunctionAttrs(def)) {
    const FunctionDef* callee = library.Find(called.name());
    if (callee == nullptr) continue;
    if (depth == 0) return true;
    for (const NodeDef& inner : callee->node_def()) {
      const OpDef* op = nullptr;
      if (!library.LookUpOpDef(inner.op(), &op).ok()) return true;
      if ((op->is_stateful() && HasSeed(AttrSlice(inner))) ||
          CallsSeededDraw(inner, library, depth - 1)) {
        return true;
      }
    }
  }
  return false;
}

struct SiteOutput {
  const CallSite* site = nullptr;
  const Node* node = nullptr;
  int index = 0;
};

// Follows a tensor through calls to the node that yields it: no site, and no
// parameter but those of the step. Its node is null if there is none.
SiteOutput BehindCalls(SiteOutput at) {
  while (true) {
    const Edge* edge = nullptr;
    const CallSite* const called = at.site->SiteOf(*at.node);
    if (at.node->IsArg() && at.site->caller != nullptr) {
      if (!at.site->call->input_edge(IndexOf(*at.node), &edge).ok()) return {};
      at.site = at.site->caller;
    } else if (called != nullptr) {
      const auto& results = called->body->ret_nodes;
      if (at.index >= static_cast<int>(results.size()) ||
          !results[at.index]->input_edge(0, &edge).ok()) {
        return {};
      }
      at.site = called;
    } else {
      return at;
    }
    at.node = edge->src();
    at.index = edge->src_output();
  }
}

// Adds the types and the shapes of the elements of the iterator `arg`.
void AddElementSpec(const Node& arg, const CallSite& site,
                    NodeDefBuilder* builder) {
  for (const Edge* edge : arg.out_edges()) {
    DataTypeVector types;
    std::vector<PartialTensorShape> shapes;
    if (!edge->IsControlEdge() &&
        GetNodeAttr(edge->dst()->attrs(), "output_types", &types).ok() &&
        GetNodeAttr(edge->dst()->attrs(), "output_shapes", &shapes).ok() &&
        !types.empty()) {
      builder->Attr("output_types", types).Attr("output_shapes", shapes);
      return;
    }
  }
  // The types do not matter to the partition.
  builder->Attr("output_types", DataTypeVector{DT_INT64})
      .Attr("output_shapes", std::vector<PartialTensorShape>{{}});
}

}  // namespace

Status FlatStep::Create(const CallSite& root,
                        const std::vector<StepInput>& inputs,
                        const FunctionLibraryDefinition& library,
                        const Node* loop, std::unique_ptr<FlatStep>* flat) {
  flat->reset(new FlatStep(library, loop));
  FlatStep& step = **flat;
  step.draws_.resize(inputs.size());
  step.FindDrawsAndReads(root, inputs);
  step.ForgetReads();
  if (step.reads_.size() > 1) {
    step.calls_of_python_.insert(step.reads_.begin(), step.reads_.end());
    TF_RETURN_IF_ERROR(step.AddSource());
  }
  TF_RETURN_IF_ERROR(step.AddNodes(root, "", inputs));
  TF_RETURN_IF_ERROR(step.AddEdges(root));
  step.LetDrawsAwaitRecords();
  TF_RETURN_IF_ERROR(step.AddOutputs(root, inputs));
  step.originals_.resize(step.graph_.num_node_ids());
  for (const auto& [original, node] : step.nodes_) {
    step.originals_[node->id()] = original;
  }
  return OkStatus();
}

void FlatStep::LetDrawsAwaitRecords() {
  Node* source = nullptr;
  std::vector<Node*> draws;
  for (Node* node : graph_.op_nodes()) {
    if (source == nullptr && IsSourceOp(*node)) source = node;
    int64_t seed = 0;
    if (node->op_def().is_stateful() &&
        TryGetNodeAttr(node->attrs(), "seed", &seed)) {
      draws.push_back(node);
    }
  }
  for (const auto& [shaped, call] : call_before_) draws.push_back(call);
  for (const auto& [draw, inputs] : loop_draws_) draws.push_back(nodes_[draw]);
  for (const auto& [original, flat] : nodes_) {
    if (original.site->is_compiled && call_before_.count(flat) == 0 &&
        !XlaCanCompile(original.node->def(), graph_.flib_def())) {
      draws.push_back(flat);
    }
  }
  if (source == nullptr || draws.empty()) return;
  std::vector<bool> before_source(graph_.num_node_ids());
  ReverseDFSFrom(graph_, {source}, /*enter=*/{}, [&before_source](Node* node) {
    before_source[node->id()] = true;
  });
  for (Node* draw : draws) {
    if (!before_source[draw->id()]) graph_.AddControlEdge(source, draw);
  }
}

Status FlatStep::Add(NodeDef def, Node** added) {
  def.clear_input();
  Status status;
  *added = graph_.AddNode(std::move(def), &status);
  return status;
}

int FlatStep::StepInputOf(const CallSite& site, const Node& node,
                          int input) const {
  SiteOutput from = {&site, &node, 0};
  do {
    const Edge* edge = nullptr;
    if (!from.node->input_edge(input, &edge).ok()) return -1;
    from = BehindCalls({from.site, edge->src(), edge->src_output()});
    if (from.node == nullptr) return -1;
    input = 0;
  } while (from.node->type_string() == "Identity");
  return from.node->IsArg() ? IndexOf(*from.node) : -1;
}

void FlatStep::FindDrawsAndReads(const CallSite& site,
                                 const std::vector<StepInput>& inputs) {
  for (const Node* node : site.graph()->op_nodes()) {
    if (const CallSite* called = site.SiteOf(*node)) {
      FindDrawsAndReads(*called, inputs);
      continue;
    }
    if (node != loop_) FindLoopDraws(site, *node, inputs);
    const bool is_read = IsRead(*node);
    if (!is_read && !IsReadAndSkip(*node) && !IsCounterRead(*node) &&
        !IsCounterAssignment(*node)) {
      continue;
    }
    const int index = StepInputOf(site, *node, 0);
    if (index < 0) continue;
    if (is_read && inputs[index].kind == InputKind::kIterator) {
      reads_.push_back({&site, node});
    } else if (!is_read && inputs[index].kind == InputKind::kRandomState) {
      draws_[index].push_back({&site, node, 0});
      calls_of_python_.insert({&site, node});
    }
  }
}

void FlatStep::ForgetReads() {
  for (std::vector<Draw>& draws : draws_) {
    if (!absl::c_all_of(draws, [](const Draw& draw) {
          return IsCounterRead(*draw.node);
        })) {
      continue;
    }
    for (const Draw& draw : draws) {
      calls_of_python_.erase({draw.site, draw.node});
    }
    draws.clear();
  }
}

void FlatStep::FindLoopDraws(const CallSite& site, const Node& node,
                             const std::vector<StepInput>& inputs) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i) != DT_RESOURCE) continue;
    const int index = StepInputOf(site, node, i);
    if (index < 0 || inputs[index].kind != InputKind::kRandomState) continue;
    const std::optional<int> algorithm =
        AlgorithmOfDraws(node, i, graph_.flib_def());
    if (!algorithm.has_value()) continue;
    draws_[index].push_back({&site, &node, i, *algorithm});
    loop_draws_[{&site, &node}].insert(i);
  }
}

Status FlatStep::AddInput(const Node& arg, const StepInput& input,
                          const CallSite& root) {
  const DataType dtype = arg.output_type(0);
  const std::string name = input.name.empty() ? arg.name() : input.name;
  const std::string unique = absl::StrCat(name, "/", arg.name());
  NodeDef def;
  switch (input.kind) {
    case InputKind::kIterator: {
      NodeDefBuilder builder(name, "IteratorV2");
      builder.Attr("shared_name", unique).Attr("container", "");
      AddElementSpec(arg, root, &builder);
      TF_RETURN_IF_ERROR(builder.Finalize(&def));
      break;
    }
    case InputKind::kTable:
      TF_RETURN_IF_ERROR(NodeDefBuilder(name, "HashTableV2")
                             .Attr("shared_name", unique)
                             .Attr("key_dtype", DT_STRING)
                             .Attr("value_dtype", DT_INT64)
                             .Finalize(&def));
      break;
    case InputKind::kConstant:
      // No Const: shape functions must not see a value that is not there.
      TF_RETURN_IF_ERROR(NodeDefBuilder(name, "ImmutableConst")
                             .Attr("dtype", dtype)
                             .Attr("shape", input.shape)
                             .Attr("memory_region_name", "")
                             .Finalize(&def));
      break;
    case InputKind::kRandomState:
    case InputKind::kVariable:
    case InputKind::kShared:
      if (dtype == DT_RESOURCE) {
        TF_RETURN_IF_ERROR(NodeDefBuilder(name, "VarHandleOp")
                               .Attr("shared_name", unique)
                               .Attr("dtype", DT_FLOAT)
                               .Attr("shape", PartialTensorShape())
                               .Finalize(&def));
        break;
      }
      [[fallthrough]];
    case InputKind::kOther:
      TF_RETURN_IF_ERROR(NodeDefBuilder(name, "Placeholder")
                             .Attr("dtype", dtype)
                             .Attr("shape", PartialTensorShape())
                             .Finalize(&def));
      break;
  }
  Node* added = nullptr;
  TF_RETURN_IF_ERROR(Add(std::move(def), &added));
  nodes_[{&root, &arg}] = added;
  return OkStatus();
}

Status FlatStep::AddCallOfPython(const std::string& name,
                                 const DataTypeVector& inputs,
                                 const DataTypeVector& outputs, Node** added) {
  NodeDef call;
  call.set_name(name);
  call.set_op("PyFunc");
  AddNodeAttr("token", "", &call);
  AddNodeAttr("Tin", inputs, &call);
  AddNodeAttr("Tout", outputs, &call);
  TF_RETURN_IF_ERROR(Add(std::move(call), added));
  call_before_[*added] = *added;
  return OkStatus();
}

Status FlatStep::AddCallBefore(const DataTypeVector& inputs, DataType output,
                               NodeDef def, Node** added) {
  Node* call = nullptr;
  TF_RETURN_IF_ERROR(AddCallOfPython(def.name(), inputs, {output}, &call));
  TF_RETURN_IF_ERROR(Add(std::move(def), added));
  graph_.AddEdge(call, 0, *added, 0);
  call_before_[*added] = call;
  return OkStatus();
}

Status FlatStep::AddDraw(const Node& node, const std::string& name,
                         Node** added) {
  NodeDef def;
  def.set_name(name);
  def.set_op("EnsureShape");
  AddNodeAttr("T", DT_INT64, &def);
  AddNodeAttr("shape", PartialTensorShape({3}), &def);
  return AddCallBefore(
      DataTypeVector(node.input_types().begin() + 1, node.input_types().end()),
      DT_INT64, std::move(def), added);
}

Status FlatStep::AddCounterRead(const Node& node, const std::string& name,
                                Node** added) {
  NodeDef def;
  def.set_name(name);
  def.set_op("Identity");
  AddNodeAttr("T", TypeOfVariable(node), &def);
  return AddCallBefore({}, TypeOfVariable(node), std::move(def), added);
}

Status FlatStep::AddRead(const Node& node, const std::string& name,
                         Node** added) {
  NodeDef def;
  def.set_name(name);
  def.set_op("OptionalGetValue");
  for (const char* attr : {"output_types", "output_shapes"}) {
    const AttrValue* value = node.attrs().Find(attr);
    if (value == nullptr) {
      return errors::InvalidArgument("'", node.name(), "' has no attribute '",
                                     attr, "'.");
    }
    AddNodeAttr(attr, *value, &def);
  }
  return AddCallBefore({}, DT_VARIANT, std::move(def), added);
}

Status FlatStep::AddOncePerRecord(const Node& node, const std::string& name,
                                  Node** added) {
  if (IsRead(node)) return AddRead(node, name, added);
  if (IsReadAndSkip(node)) return AddDraw(node, name, added);
  if (IsCounterRead(node)) return AddCounterRead(node, name, added);
  // An assignment to a counter yields nothing.
  return AddCallOfPython(name, {TypeOfVariable(node)}, {}, added);
}

Status FlatStep::AddSource() {
  const DataTypeVector types = {DT_INT64};
  const std::vector<PartialTensorShape> shapes = {{}};
  Node* iterator = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder("staging_iterators", "IteratorV2")
                         .Attr("shared_name", "staging_iterators")
                         .Attr("container", "")
                         .Attr("output_types", types)
                         .Attr("output_shapes", shapes)
                         .Finalize(&graph_, &iterator));
  Node* elements = nullptr;
  return NodeBuilder("staging_elements", "IteratorGetNext")
      .Input(iterator)
      .Attr("output_types", types)
      .Attr("output_shapes", shapes)
      .Finalize(&graph_, &elements);
}

Status FlatStep::AddNodes(const CallSite& site, const std::string& scope,
                          const std::vector<StepInput>& inputs) {
  if (site.caller != nullptr) {
    std::pair<Node*, Node*>& ends = ends_[&site];
    TF_RETURN_IF_ERROR(
        NodeBuilder(scope + "before", "NoOp").Finalize(&graph_, &ends.first));
    TF_RETURN_IF_ERROR(
        NodeBuilder(scope + "after", "NoOp").Finalize(&graph_, &ends.second));
  }
  for (const Node* node : site.graph()->op_nodes()) {
    if (const CallSite* called = site.SiteOf(*node)) {
      TF_RETURN_IF_ERROR(
          AddNodes(*called, absl::StrCat(scope, node->name(), "/"), inputs));
      continue;
    }
    if (node->IsRetval()) continue;
    if (node->IsArg()) {
      if (site.caller == nullptr) {
        TF_RETURN_IF_ERROR(AddInput(*node, inputs[IndexOf(*node)], site));
      }
      continue;
    }
    const std::string name = scope + node->name();
    Node* added = nullptr;
    if (calls_of_python_.count({&site, node}) > 0) {
      TF_RETURN_IF_ERROR(AddOncePerRecord(*node, name, &added));
    } else {
      NodeDef def = node->def();
      def.set_name(name);
      def.mutable_attr()->erase("_class");
      if ((node->op_def().is_stateful() && HasSeed(node->attrs())) ||
          CallsSeededDraw(node->def(), graph_.flib_def(), /*depth=*/16)) {
        AddNodeAttr(kTargetAttr, true, &def);
        AddNodeAttr(kStaysInStepAttr, kStaysAsSeededDraw, &def);
      }
      TF_RETURN_IF_ERROR(Add(std::move(def), &added));
    }
    nodes_[{&site, node}] = added;
  }
  return OkStatus();
}

Status FlatStep::AddLoopInput(const Node** added) {
  *added = loop_input_;
  if (loop_input_ != nullptr) return OkStatus();
  NodeDef def;
  TF_RETURN_IF_ERROR(NodeDefBuilder("staging_loop", "VarHandleOp")
                         .Attr("shared_name", "staging_loop")
                         .Attr("dtype", DT_FLOAT)
                         .Attr("shape", PartialTensorShape())
                         .Finalize(&def));
  TF_RETURN_IF_ERROR(Add(std::move(def), &loop_input_));
  *added = loop_input_;
  return OkStatus();
}

Status FlatStep::AddLoopState(const Node** added) {
  *added = loop_state_;
  if (loop_state_ != nullptr) return OkStatus();
  NodeDef def;
  TF_RETURN_IF_ERROR(NodeDefBuilder("staging_state", "ImmutableConst")
                         .Attr("dtype", DT_RESOURCE)
                         .Attr("shape", TensorShape())
                         .Attr("memory_region_name", "")
                         .Finalize(&def));
  TF_RETURN_IF_ERROR(Add(std::move(def), &loop_state_));
  *added = loop_state_;
  return OkStatus();
}

Status FlatStep::AddEdges(const CallSite& site) {
  for (const Node* node : site.graph()->op_nodes()) {
    const CallSite* const called = site.SiteOf(*node);
    if (called != nullptr) TF_RETURN_IF_ERROR(AddEdges(*called));
    const auto found = nodes_.find({&site, node});
    if (called == nullptr && (found == nodes_.end() || node->IsArg())) continue;
    // Its first input is the state or the iterator.
    const bool is_call =
        called == nullptr && calls_of_python_.count({&site, node}) > 0;
    Node* const to = called != nullptr ? ends_[called].first
                     : is_call         ? call_before_[found->second]
                                       : found->second;
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      if (edge->IsControlEdge()) {
        // tf.function lets what uses a resource wait for a call that does, and so
        // for all effects of the call. A lookup sees none of them.
        if (IsTableRead(node->type_string()) &&
            site.SiteOf(*edge->src()) != nullptr)
          continue;
        AddControlEdge(site, *edge->src(), to);
      } else if (called == nullptr && !(is_call && edge->dst_input() == 0)) {
        auto [src, output] = Resolve(site, *edge->src(), edge->src_output());
        if (node == loop_ && src != nullptr &&
            src->type_string() == "IteratorV2") {
          TF_RETURN_IF_ERROR(AddLoopInput(&src));
        }
        const auto draws = loop_draws_.find({&site, node});
        if (draws != loop_draws_.end() &&
            draws->second.count(edge->dst_input()) > 0) {
          TF_RETURN_IF_ERROR(AddLoopState(&src));
          output = 0;
        }
        if (src == nullptr) {
          return errors::Internal("No node yields input ", edge->dst_input(),
                                  " of '", node->name(), "'.");
        }
        graph_.AddEdge(const_cast<Node*>(src), output, to,
                       edge->dst_input() - (is_call ? 1 : 0));
      }
    }
    // What a call waits for orders effects. Pure nodes, and lookups in tables
    // that nothing changes, have none.
    if (site.caller != nullptr && called == nullptr &&
        node->op_def().is_stateful() && !IsTableRead(node->type_string())) {
      graph_.AddControlEdge(ends_[&site].first, to);
    }
  }
  if (site.caller != nullptr) {
    const auto& [before, after] = ends_[&site];
    graph_.AddControlEdge(before, after);
    for (const Node* node : site.body->control_ret_nodes) {
      AddControlEdge(site, *node, after);
    }
  }
  return OkStatus();
}

void FlatStep::AddControlEdge(const CallSite& site, const Node& from,
                              Node* to) {
  const CallSite* const called = site.SiteOf(from);
  const auto found = nodes_.find({&site, &from});
  if (called != nullptr) {
    graph_.AddControlEdge(ends_[called].second, to);
  } else if (found != nodes_.end()) {
    graph_.AddControlEdge(found->second, to);
  }
}

Status FlatStep::AddOutputs(const CallSite& root,
                            const std::vector<StepInput>& inputs) {
  for (const Node* node : root.body->ret_nodes) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(node->input_edge(0, &edge));
    // The body of a loop returns the state for the next iteration.
    const Node* const returned = BehindIdentities(edge);
    if (returned->IsArg() && IndexOf(*returned) == IndexOf(*node) &&
        inputs[IndexOf(*returned)].kind == InputKind::kRandomState) {
      continue;
    }
    const auto [src, output] = Resolve(root, *edge->src(), edge->src_output());
    if (src == nullptr) {
      return errors::Internal("No node yields output '", node->name(), "'.");
    }
    Node* added = nullptr;
    TF_RETURN_IF_ERROR(NodeBuilder(node->name(), "Identity")
                           .Input(const_cast<Node*>(src), output)
                           .Attr(kTargetAttr, true)
                           .Finalize(&graph_, &added));
  }
  Node* added = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder("control_outputs", "NoOp")
                         .Attr(kTargetAttr, true)
                         .Finalize(&graph_, &added));
  for (const Node* node : root.body->control_ret_nodes) {
    AddControlEdge(root, *node, added);
  }
  return OkStatus();
}

const Node* FlatStep::Find(const SiteNode& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second;
}

SiteNode FlatStep::Original(const Node& flat) const {
  return originals_[flat.id()];
}

std::pair<const Node*, int> FlatStep::Resolve(const CallSite& site,
                                              const Node& node,
                                              int output) const {
  const SiteOutput from = BehindCalls({&site, &node, output});
  if (from.node == nullptr) return {nullptr, 0};
  return {Find({from.site, from.node}), from.index};
}

}  // namespace staging
}  // namespace tensorflow
