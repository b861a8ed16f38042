// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/optional_division.h"

#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/ahead/division/inner_division.h"
#include "tensorflow_staging/core/compat/function_body.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kRead[] = "IteratorGetNext";
constexpr char kReadOptional[] = "IteratorGetNextAsOptional";
constexpr char kHasValue[] = "OptionalHasValue";
constexpr char kGetValue[] = "OptionalGetValue";

// Returns what uses `node`, but for what returns it to a loop.
std::vector<const Edge*> UsesOf(const Node& node) {
  std::vector<const Edge*> uses;
  for (const Edge* edge : node.out_edges()) {
    if (!edge->IsControlEdge() && !edge->dst()->IsRetval()) {
      uses.push_back(edge);
    }
  }
  return uses;
}

// Sets `*branch` to a function of the branches of `conditional`.
Status FindBranch(const Node& conditional, const char* attr,
                  const FunctionLibraryDefinition& library,
                  const FunctionDef** branch) {
  NameAttrList name;
  TF_RETURN_IF_ERROR(GetNodeAttr(conditional.attrs(), attr, &name));
  *branch = library.Find(name.name());
  if (*branch == nullptr) {
    return errors::NotFound("The branch '", name.name(), "' of '",
                            conditional.name(), "' is not in the library.");
  }
  if ((*branch)->signature().input_arg_size() != conditional.num_inputs() - 1) {
    return errors::InvalidArgument(
        "'", conditional.name(), "' passes ", conditional.num_inputs() - 1,
        " inputs to its branch '", name.name(), "', which has ",
        (*branch)->signature().input_arg_size(), ".");
  }
  return OkStatus();
}

bool Uses(const FunctionDef& function, const std::string& input) {
  return absl::c_any_of(function.node_def(),
                        [&input](const NodeDef& node) {
                          return absl::c_linear_search(node.input(), input);
                        }) ||
         absl::c_any_of(function.ret(), [&input](const auto& result) {
           return result.second == input;
         });
}

// Lets input `i` of `branch`, an Optional, be a handle instead.
void MakeHandle(int i, FunctionDef* branch) {
  OpDef::ArgDef* const arg = branch->mutable_signature()->mutable_input_arg(i);
  arg->set_type(DT_RESOURCE);
  arg->clear_experimental_full_type();
}

// Lets `branch` read an iterator, its input `i`, where it gets the value of the
// Optional. Returns false if it uses the Optional in another way.
bool ReadInBranch(int i, FunctionDef* branch) {
  MakeHandle(i, branch);
  const std::string& input = branch->signature().input_arg(i).name();
  for (NodeDef& node : *branch->mutable_node_def()) {
    if (node.op() != kGetValue || !absl::c_linear_search(node.input(), input)) {
      continue;
    }
    node.set_op(kRead);
    node.clear_experimental_type();
    break;
  }
  // One read, and nothing else.
  return absl::c_count_if(branch->node_def(),
                          [&input](const NodeDef& node) {
                            return absl::c_linear_search(node.input(), input);
                          }) == 1 &&
         absl::c_any_of(branch->node_def(),
                        [&input](const NodeDef& node) {
                          return node.op() == kRead &&
                                 absl::c_linear_search(node.input(), input);
                        }) &&
         absl::c_none_of(branch->ret(), [&input](const auto& result) {
           return result.second == input;
         });
}

// Finds which input of the step each input of the branches is; -1 if none.
Status FindOuterInputs(const OptionalRead& read, std::vector<int>* outer) {
  for (int i = 1; i < read.conditional->num_inputs(); ++i) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(read.conditional->input_edge(i, &edge));
    const Node* const from = BehindIdentities(edge);
    outer->push_back(from->IsArg() ? IndexOf(*from) : -1);
  }
  (*outer)[read.branch_input] = read.iterator;
  return OkStatus();
}

// Whether each element takes the branch.
bool TakesEachElement(const OptionalRead& read) {
  const Edge* edge = nullptr;
  return read.conditional->input_edge(0, &edge).ok() &&
         absl::c_linear_search(read.asks, BehindIdentities(edge));
}

// Lets `node` use the record in the place of the Optional.
void UseRecord(const OptionalRead& read, NodeDef* node) {
  const std::string& name = read.read->name();
  std::map<std::string, std::string> renamed = {
      {absl::StrCat(name, ":optional:0"), absl::StrCat(name, ":record:0")}};
  for (const Node* asks : read.asks) {
    renamed[absl::StrCat(asks->name(), ":has_value:0")] =
        absl::StrCat(name, ":has_record:0");
    renamed[absl::StrCat("^", asks->name())] = absl::StrCat("^", name);
  }
  std::set<std::string> awaited;
  std::vector<std::string> inputs;
  for (const std::string& input : node->input()) {
    const auto found = renamed.find(input);
    const std::string& used = found == renamed.end() ? input : found->second;
    if (used[0] != '^' || awaited.insert(used).second) inputs.push_back(used);
  }
  node->mutable_input()->Assign(inputs.begin(), inputs.end());
}

// Makes of `function`, that of `step`, the rest: it takes a record where it reads,
// and has the branches `values` and `none`.
void TakeRecord(const CallSite& step, const OptionalRead& read,
                const std::string& values, const std::string& none,
                FunctionDef* function) {
  // What leads to no output may use the Optional in any way.
  std::set<std::string> live;
  for (const Node* node : step.graph()->op_nodes()) live.insert(node->name());
  google::protobuf::RepeatedPtrField<NodeDef> nodes;
  nodes.Swap(function->mutable_node_def());
  for (NodeDef& node : nodes) {
    if (node.name() == read.read->name()) {
      node.set_op(kStepTakeIfAnyOp);
      node.clear_attr();
      node.clear_device();
      node.clear_experimental_type();
    } else if (node.name() == read.conditional->name()) {
      node.set_op("If");
      auto& attrs = *node.mutable_attr();
      attrs["Tin"].mutable_list()->set_type(read.branch_input, DT_RESOURCE);
      attrs["then_branch"].mutable_func()->set_name(values);
      attrs["else_branch"].mutable_func()->set_name(none);
    }
    const auto is_node = [&node](const Node* asks) {
      return asks->name() == node.name();
    };
    if (live.count(node.name()) == 0 || absl::c_any_of(read.asks, is_node)) {
      continue;
    }
    UseRecord(read, &node);
    *function->add_node_def() = std::move(node);
  }
  for (auto& [output, tensor] : *function->mutable_ret()) {
    for (const Node* asks : read.asks) {
      if (tensor == absl::StrCat(asks->name(), ":has_value:0")) {
        tensor = absl::StrCat(read.read->name(), ":has_record:0");
      }
    }
  }
}

}  // namespace

bool FindOptionalRead(const CallSite& step,
                      const std::vector<StepInput>& inputs,
                      OptionalRead* found) {
  const auto is_iterator = [](const StepInput& input) {
    return input.kind == InputKind::kIterator;
  };
  const auto iterator = absl::c_find_if(inputs, is_iterator);
  if (absl::c_count_if(inputs, is_iterator) != 1) return false;
  found->iterator = iterator - inputs.begin();
  const std::vector<const Edge*> reads =
      UsesOf(*step.body->arg_nodes[found->iterator]);
  if (reads.size() != 1 || reads[0]->dst()->type_string() != kReadOptional) {
    return false;
  }
  found->read = reads[0]->dst();
  for (const Edge* edge : found->read->out_edges()) {
    if (edge->IsControlEdge()) continue;
    const Node* const user = edge->dst();
    if (user->type_string() == kHasValue) {
      found->asks.push_back(user);
    } else if (user->IsIfNode() && found->conditional == nullptr &&
               edge->dst_input() > 0) {
      found->conditional = user;
      found->branch_input = edge->dst_input() - 1;
    } else {
      return false;
    }
  }
  return found->conditional != nullptr;
}

Status DivideOptional(const CallSite& step, const OptionalRead& read,
                      const std::vector<StepInput>& inputs,
                      const FunctionLibraryDefinition& library,
                      const std::string& prefix, int loops,
                      StepDivision* division) {
  const FunctionDef* found = nullptr;
  TF_RETURN_IF_ERROR(
      FindBranch(*read.conditional, "then_branch", library, &found));
  FunctionDef values = *found;
  TF_RETURN_IF_ERROR(
      FindBranch(*read.conditional, "else_branch", library, &found));
  FunctionDef none = *found;
  if (!ReadInBranch(read.branch_input, &values) ||
      Uses(none, none.signature().input_arg(read.branch_input).name())) {
    division->why_not = absl::StrCat(
        "'", read.conditional->name(), "' (", read.conditional->type_string(),
        ") uses the Optional '", read.read->name(),
        "' other than by one get_value() where it has one");
    return OkStatus();
  }
  std::vector<StepInput> usable = inputs;
  if (!TakesEachElement(read)) {
    for (StepInput& input : usable) {
      if (input.kind == InputKind::kVariable) input.kind = InputKind::kShared;
    }
  }
  std::vector<int> outer;
  TF_RETURN_IF_ERROR(FindOuterInputs(read, &outer));
  StepDivision inner;
  TF_RETURN_IF_ERROR(DivideInner(values, outer, usable, library,
                                 absl::StrCat(prefix, "branch_"), loops + 1,
                                 &inner));
  if (!inner.why_not.empty()) {
    division->why_not = inner.why_not;
    return OkStatus();
  }
  const FunctionDef& original = DefinitionOf(*step.body);
  MakeHandle(read.branch_input, &none);
  none.mutable_signature()->set_name(inner.NewName(prefix, "none", none));
  FunctionDef rest = original;
  TakeRecord(step, read, inner.rest, none.signature().name(), &rest);
  rest.mutable_signature()->set_name(inner.NewName(prefix, "rest", original));
  *division = std::move(inner);
  division->rest = rest.signature().name();
  *division->functions.add_function() = std::move(none);
  *division->functions.add_function() = std::move(rest);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
