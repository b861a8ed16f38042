// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/flat_step.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/division/loop_draws.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsRead(const Node& node) {
  return node.type_string() == "IteratorGetNext" ||
         node.type_string() == "IteratorGetNextSync";
}

// Returns why a node stays in the rest whatever it depends on: for itself, or for
// a node of a function that it calls, such as the branch of a conditional.
// Returns kNone if it may run ahead.
StepReason WhyItStays(const NodeDef& def,
                      const FunctionLibraryDefinition& library) {
  StepReason why = StepReason::kNone;
  const auto stays = [&library, &why](const NodeDef& node) {
    bool is_marked = false;
    int64_t seed = 0, seed2 = 0;
    const OpDef* op = nullptr;
    if (TryGetNodeAttr(node, kStaysInStepAttr, &is_marked) && is_marked) {
      why = StepReason::kPython;
    } else if ((TryGetNodeAttr(node, "seed", &seed) && seed != 0) ||
               (TryGetNodeAttr(node, "seed2", &seed2) && seed2 != 0)) {
      // The kernel has the state. Ahead, records that are dropped would draw
      // from it.
      if (library.LookUpOpDef(node.op(), &op).ok() && op->is_stateful()) {
        why = StepReason::kSeededDraw;
      }
    }
    return why != StepReason::kNone;
  };
  if (!stays(def)) {
    AnyNodeOfFunctions(CalledFunctions(def, library), library, stays);
  }
  return why;
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

}  // namespace

Status FlatStep::Create(const CallSite& root,
                        const std::vector<StepInput>& inputs,
                        const FunctionLibraryDefinition& library,
                        const Node* loop, std::unique_ptr<FlatStep>* flat) {
  flat->reset(new FlatStep(library, loop));
  FlatStep& step = **flat;
  step.draws_.resize(inputs.size());
  step.FindDrawsAndReads(root, inputs);
  step.reads_and_draws_.insert(step.reads_.begin(), step.reads_.end());
  for (std::vector<Draw>& draws : step.draws_) {
    // A counter that is only read is as any variable.
    if (absl::c_all_of(draws, [](const Draw& draw) {
          return IsCounterRead(*draw.node);
        })) {
      draws.clear();
    }
    step.reads_and_draws_.insert(draws.begin(), draws.end());
  }
  TF_RETURN_IF_ERROR(NodeBuilder("staging_records", "NoOp")
                         .Finalize(&step.graph_, &step.source_));
  step.roles_[step.source_] = {NodeRole::kSource};
  TF_RETURN_IF_ERROR(step.AddNodes(root, "", inputs));
  TF_RETURN_IF_ERROR(step.AddEdges(root));
  TF_RETURN_IF_ERROR(step.AddOutputs(root, inputs));
  step.originals_.resize(step.graph_.num_node_ids());
  for (const auto& [original, node] : step.nodes_) {
    step.originals_[node->id()] = original;
  }
  return OkStatus();
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
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (node->input_type(i) != DT_RESOURCE) continue;
      const int index = StepInputOf(site, *node, i);
      if (index < 0) continue;
      if (inputs[index].kind == InputKind::kIterator && IsRead(*node)) {
        reads_.push_back({&site, node});
      }
      if (inputs[index].kind != InputKind::kRandomState) continue;
      if (IsReadAndSkip(*node) || IsCounterRead(*node) ||
          IsCounterAssignment(*node)) {
        draws_[index].push_back({{&site, node}, i});
      } else if (node != loop_) {
        const std::optional<int> algorithm =
            AlgorithmOfDraws(*node, i, graph_.flib_def());
        if (!algorithm.has_value()) continue;
        draws_[index].push_back({{&site, node}, i, *algorithm});
      }
    }
  }
}

RoleAndReason FlatStep::RoleOfInput(int index, InputKind kind) const {
  switch (kind) {
    case InputKind::kIterator:
    case InputKind::kTable:
      return {NodeRole::kHandle};
    case InputKind::kConstant:
      return {NodeRole::kPure};
    case InputKind::kRandomState:
      if (!draws_[index].empty()) return {NodeRole::kHandle};
      [[fallthrough]];
    case InputKind::kVariable:
    case InputKind::kShared:
      return {NodeRole::kStepOnly, StepReason::kVariable};
    case InputKind::kOther:
      break;
  }
  return {NodeRole::kStepOnly, StepReason::kPlaceholder};
}

bool FlatStep::AwaitsRecord(const SiteNode& original) const {
  const Node& node = *original.node;
  return reads_and_draws_.count(original) > 0 ||
         (node.op_def().is_stateful() && node.attrs().Find("seed")) ||
         // It must leave its call, and so goes with a record.
         (original.site->is_compiled &&
          !XlaCanCompile(node.def(), graph_.flib_def()));
}

Status FlatStep::Add(const SiteNode& original, const std::string& name,
                     Node** added) {
  NodeDef def = original.node->def();
  def.set_name(name);
  def.clear_input();
  def.mutable_attr()->erase("_class");
  Status status;
  *added = nodes_[original] = graph_.AddNode(std::move(def), &status);
  return status;
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
    const SiteNode original = {&site, node};
    Node* added = nullptr;
    if (node->IsRetval() || (node->IsArg() && site.caller != nullptr)) continue;
    if (node->IsArg()) {
      const StepInput& input = inputs[IndexOf(*node)];
      TF_RETURN_IF_ERROR(Add(
          original, input.name.empty() ? node->name() : input.name, &added));
      roles_[added] = RoleOfInput(IndexOf(*node), input.kind);
      continue;
    }
    TF_RETURN_IF_ERROR(Add(original, scope + node->name(), &added));
    if (AwaitsRecord(original)) graph_.AddControlEdge(source_, added);
    // `loop` reads for itself what the step would read beside it.
    const StepReason why = node == loop_
                               ? StepReason::kConditionalSource
                               : WhyItStays(node->def(), graph_.flib_def());
    if (why != StepReason::kNone) {
      roles_[added] = {NodeRole::kStepOnly, why};
    } else if (reads_and_draws_.count(original) > 0 &&
               FunctionAttrs(node->def()).empty()) {
      // What else the functions of a loop do decides on its role.
      roles_[added] = {NodeRole::kOncePerRecord};
    }
  }
  return OkStatus();
}

Status FlatStep::AddEdges(const CallSite& site) {
  for (const Node* node : site.graph()->op_nodes()) {
    const CallSite* const called = site.SiteOf(*node);
    if (called != nullptr) TF_RETURN_IF_ERROR(AddEdges(*called));
    const auto found = nodes_.find({&site, node});
    if (called == nullptr && (found == nodes_.end() || node->IsArg())) continue;
    Node* const to = called != nullptr ? ends_[called].first : found->second;
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      if (edge->IsControlEdge()) {
        // tf.function lets what uses a resource wait for a call that does, and so
        // for all effects of the call. A lookup sees none of them.
        if (IsTableRead(node->type_string()) &&
            site.SiteOf(*edge->src()) != nullptr)
          continue;
        AddControlEdge(site, *edge->src(), to);
      } else if (called == nullptr) {
        const auto [src, output] =
            Resolve(site, *edge->src(), edge->src_output());
        if (src == nullptr) {
          return errors::Internal("No node yields input ", edge->dst_input(),
                                  " of '", node->name(), "'.");
        }
        graph_.AddEdge(const_cast<Node*>(src), output, to, edge->dst_input());
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
