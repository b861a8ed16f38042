// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/loop_division.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/division/inner_division.h"

namespace tensorflow {
namespace staging {
namespace {

// Finds for each parameter of the body which input of the step it is in all
// iterations; -1 if none.
Status FindOuterInputs(const Node& loop, const FunctionBody& body,
                       std::vector<int>* outer) {
  outer->assign(body.arg_nodes.size(), -1);
  if (body.arg_nodes.size() > body.ret_nodes.size() ||
      static_cast<int>(body.arg_nodes.size()) > loop.num_inputs()) {
    return errors::InvalidArgument("Loop '", loop.name(), "' has ",
                                   loop.num_inputs(), " inputs, and its body ",
                                   body.arg_nodes.size(), " inputs and ",
                                   body.ret_nodes.size(), " outputs.");
  }
  for (size_t i = 0; i < body.arg_nodes.size(); ++i) {
    const Edge* output = nullptr;
    const Edge* input = nullptr;
    TF_RETURN_IF_ERROR(body.ret_nodes[i]->input_edge(0, &output));
    TF_RETURN_IF_ERROR(loop.input_edge(i, &input));
    const Node* from = BehindIdentities(input);
    if (from->IsArg() && BehindIdentities(output) == body.arg_nodes[i]) {
      (*outer)[i] = IndexOf(*from);
    }
  }
  return OkStatus();
}

}  // namespace

const Node* LoopThatReads(const CallSite& step,
                          const std::vector<StepInput>& inputs, bool* alone) {
  const Node* loop = nullptr;
  *alone = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != InputKind::kIterator) continue;
    for (const Edge* edge : step.body->arg_nodes[i]->out_edges()) {
      // A loop's body returns the iterator for the next iteration.
      if (edge->IsControlEdge() || edge->dst()->IsRetval()) continue;
      const Node* user = edge->dst();
      if (user->type_string() != "While" &&
          user->type_string() != "StatelessWhile") {
        *alone = false;
      } else if (loop == nullptr || loop == user) {
        loop = user;
      } else {
        return nullptr;
      }
    }
  }
  return loop;
}

Status DivideLoop(const FunctionDef& step, const Node& loop,
                  const std::vector<StepInput>& inputs,
                  const FunctionLibraryDefinition& library,
                  const std::string& prefix, int loops,
                  StepDivision* division) {
  NameAttrList body_name;
  TF_RETURN_IF_ERROR(GetNodeAttr(loop.attrs(), "body", &body_name));
  const FunctionDef* body = library.Find(body_name.name());
  if (body == nullptr) {
    return errors::NotFound("The body '", body_name.name(), "' of loop '",
                            loop.name(), "' is not in the library.");
  }
  std::unique_ptr<FunctionBody> parsed;
  TF_RETURN_IF_ERROR(FunctionDefToBodyHelper(*body, AttrSlice(&body->attr()),
                                             &library, &parsed));
  std::vector<int> outer;
  TF_RETURN_IF_ERROR(FindOuterInputs(loop, *parsed, &outer));
  StepDivision inner;
  TF_RETURN_IF_ERROR(DivideInner(*body, outer, inputs, library,
                                 absl::StrCat(prefix, "body_"), loops + 1,
                                 &inner));
  if (!inner.why_not.empty()) {
    division->why_not = inner.why_not;
    return OkStatus();
  }
  FunctionDef rest = step;
  rest.mutable_signature()->set_name(absl::StrCat(prefix, "rest_loop"));
  inner.origins[rest.signature().name()] = step.signature().name();
  for (NodeDef& node : *rest.mutable_node_def()) {
    if (node.name() == loop.name()) {
      (*node.mutable_attr())["body"].mutable_func()->set_name(inner.rest);
    }
  }
  *division = std::move(inner);
  division->rest = rest.signature().name();
  *division->functions.add_function() = std::move(rest);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
