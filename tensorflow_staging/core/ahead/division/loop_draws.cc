// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/loop_draws.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

// Functions that are nested deeper are not followed.
constexpr int kDeepestFunction = 16;

// RngReadAndSkip moves the counter of a state by so many times its argument, for
// each algorithm. The documentation leaves it open; values with a stage are
// compared with those without.
constexpr int kLog2OfSkip = 8;

bool CallsFunctions(const Node& node) {
  return node.IsWhileNode() || node.IsIfNode() || node.IsCaseNode() ||
         node.IsPartitionedCall();
}

// Finds the algorithm of the draws from one state; fails if there are several.
class DrawsOfFunctions {
 public:
  explicit DrawsOfFunctions(const FunctionLibraryDefinition& library)
      : library_(library) {}

  // Returns whether `node` only draws from the state that is its input `input`.
  bool OnlyDraw(const Node& node, int input, int depth) {
    const int parameter =
        node.IsIfNode() || node.IsCaseNode() ? input - 1 : input;
    if (parameter < 0 || depth > kDeepestFunction) return false;
    for (const NameAttrList& called : FunctionAttrs(node.def())) {
      const FunctionDef* const function = library_.Find(called.name());
      std::unique_ptr<FunctionBody> body;
      if (function == nullptr ||
          !FunctionDefToBodyHelper(*function, AttrSlice(&called.attr()),
                                   &library_, &body)
               .ok() ||
          parameter >= static_cast<int>(body->arg_nodes.size()) ||
          !OnlyDrawFrom(*body->arg_nodes[parameter], parameter,
                        node.IsWhileNode(), depth)) {
        return false;
      }
    }
    return true;
  }

  std::optional<int> algorithm() const { return algorithm_; }

 private:
  // `handle` is parameter `parameter` of a function, which is the body of a loop
  // if `loops`, or an identity of it.
  bool OnlyDrawFrom(const Node& handle, int parameter, bool loops, int depth) {
    for (const Edge* edge : handle.out_edges()) {
      const Node& user = *edge->dst();
      if (edge->IsControlEdge() || !user.IsOp()) continue;
      bool draws = false;
      if (IsReadAndSkip(user)) {
        draws = edge->dst_input() == 0 && NoteAlgorithm(user);
      } else if (user.IsIdentity()) {
        draws = OnlyDrawFrom(user, parameter, loops, depth);
      } else if (user.IsRetval()) {
        // For the next iteration.
        draws = loops && IndexOf(user) == parameter;
      } else if (CallsFunctions(user)) {
        draws = OnlyDraw(user, edge->dst_input(), depth + 1);
      }
      if (!draws) return false;
    }
    return true;
  }

  bool NoteAlgorithm(const Node& draw) {
    const Edge* edge = nullptr;
    Tensor value;
    if (!draw.input_edge(1, &edge).ok() || !edge->src()->IsConstant() ||
        !GetNodeAttr(edge->src()->attrs(), "value", &value).ok() ||
        value.dtype() != DT_INT32 || value.NumElements() != 1) {
      return false;
    }
    const int algorithm = value.flat<int32_t>()(0);
    if (algorithm_.has_value() && *algorithm_ != algorithm) return false;
    algorithm_ = algorithm;
    return true;
  }

  const FunctionLibraryDefinition& library_;
  std::optional<int> algorithm_;
};

// Builds nodes around a draw.
class NodesAround {
 public:
  NodesAround(const Draw& draw, Graph* graph) : draw_(draw), graph_(graph) {}

  NodeBuilder New(const char* what, const char* op) const {
    return NodeBuilder(
        graph_->NewName(absl::StrCat(draw_.node->name(), "/staging_", what)),
        op);
  }

  template <typename T>
  Status AddConst(const char* what, T value, Node** added) const {
    return New(what, "Const")
        .Attr("dtype", DataTypeToEnum<T>::value)
        .Attr("value", Tensor(value))
        .Finalize(graph_, added);
  }

 private:
  const Draw& draw_;
  Graph* const graph_;
};

}  // namespace

std::optional<int> AlgorithmOfDraws(const Node& node, int input,
                                    const FunctionLibraryDefinition& library) {
  DrawsOfFunctions draws(library);
  if (!CallsFunctions(node) || !draws.OnlyDraw(node, input, /*depth=*/0)) {
    return std::nullopt;
  }
  return draws.algorithm();
}

Status MoveStateInRest(const Draw& draw, SiteSides* sides) {
  Graph* const graph = draw.site->graph();
  Node* const node = const_cast<Node*>(draw.node);
  const NodesAround around(draw, graph);
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(node->input_edge(draw.input, &edge));
  const NodeBuilder::NodeOut handle(edge->src(), edge->src_output());
  const auto read_state = [&](const char* what, std::vector<Node*> after,
                              Node** added) {
    return around.New(what, "ReadVariableOp")
        .Input(handle)
        .Attr("dtype", DT_INT64)
        .ControlInputs(std::move(after))
        .Finalize(graph, added);
  };
  // 1. Ahead: the state right before and right after. TensorFlow orders what uses a
  //    variable by control edges.
  std::vector<Node*> earlier, later;
  for (Node* before : node->in_nodes()) {
    if (before->IsOp() && !before->IsArg()) earlier.push_back(before);
  }
  for (const Edge* use : node->out_edges()) {
    if (use->IsControlEdge() && use->dst()->IsOp()) later.push_back(use->dst());
  }
  Node *before = nullptr, *after = nullptr;
  TF_RETURN_IF_ERROR(read_state("state_before", std::move(earlier), &before));
  TF_RETURN_IF_ERROR(read_state("state_after", {node}, &after));
  graph->AddControlEdge(before, node);
  for (Node* next : later) graph->AddControlEdge(after, next);
  // What waits for the call of this site draws after it, too.
  draw.site->body->control_ret_nodes.push_back(after);
  // 2. The difference of the lowest words of the counter, which come first.
  Node *difference = nullptr, *bits = nullptr, *skips = nullptr,
       *skip = nullptr;
  TF_RETURN_IF_ERROR(around.New("moved", "Sub")
                         .Input(after)
                         .Input(before)
                         .Finalize(graph, &difference));
  TF_RETURN_IF_ERROR(around.New("moved_bits", "Bitcast")
                         .Input(difference)
                         .Attr("type", DT_UINT64)
                         .Finalize(graph, &bits));
  Node *shift = nullptr, *first = nullptr, *axis = nullptr,
       *algorithm = nullptr;
  TF_RETURN_IF_ERROR(
      around.AddConst<uint64_t>("log2_of_skip", kLog2OfSkip, &shift));
  TF_RETURN_IF_ERROR(around.AddConst<int32_t>("first", 0, &first));
  TF_RETURN_IF_ERROR(around.AddConst<int32_t>("axis", 0, &axis));
  TF_RETURN_IF_ERROR(around.New("skips", "RightShift")
                         .Input(bits)
                         .Input(shift)
                         .Finalize(graph, &skips));
  TF_RETURN_IF_ERROR(around.New("skip", "GatherV2")
                         .Input(skips)
                         .Input(first)
                         .Input(axis)
                         .Finalize(graph, &skip));
  sides->ahead.insert({before, after, difference, bits, skips, skip});
  // 3. In the rest, which takes the difference from the record.
  TF_RETURN_IF_ERROR(
      around.AddConst<int32_t>("algorithm", draw.algorithm, &algorithm));
  Node* move = nullptr;
  TF_RETURN_IF_ERROR(around.New("move_state", "RngReadAndSkip")
                         .Input(handle)
                         .Input(algorithm)
                         .Input(skip)
                         .Finalize(graph, &move));
  draw.site->body->control_ret_nodes.push_back(move);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
