// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_TEST_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_TESTING_TEST_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

// Returns the node called `name`, or null if there is none.
inline const Node* FindNode(const Graph& graph, const std::string& name) {
  for (const Node* node : graph.op_nodes()) {
    if (node->name() == name) return node;
  }
  return nullptr;
}

// Returns the inputs of a node as in a GraphDef: the data inputs in order, then
// the control inputs, each with a ^, in alphabetical order.
inline std::vector<std::string> InputsOf(const Graph& graph,
                                         const std::string& name) {
  const Node* node = FindNode(graph, name);
  CHECK(node != nullptr) << "no node has the name " << name;
  std::vector<std::string> data(node->num_inputs(), "missing");
  std::vector<std::string> control;
  for (const Edge* edge : node->in_edges()) {
    if (!edge->src()->IsOp()) continue;
    if (edge->IsControlEdge()) {
      control.push_back("^" + edge->src()->name());
    } else {
      data[edge->dst_input()] =
          edge->src_output() == 0
              ? edge->src()->name()
              : strings::StrCat(edge->src()->name(), ":", edge->src_output());
    }
  }
  std::sort(control.begin(), control.end());
  data.insert(data.end(), control.begin(), control.end());
  return data;
}

// Builds a graph for tests, node by node. All values are int64 scalars. The
// caller names every node. A node that TensorFlow cannot build ends the test
// program.
class TestGraph {
 public:
  using Out = NodeBuilder::NodeOut;
  using Outs = std::vector<Out>;

  TestGraph() : graph_(OpRegistry::Global()) {}

  Graph* get() { return &graph_; }

  Node* Finalize(NodeBuilder* builder) {
    Node* node = nullptr;
    TF_CHECK_OK(builder->Finalize(&graph_, &node));
    return node;
  }

  Node* Const(const std::string& name, int64_t value) {
    const Tensor tensor(value);
    NodeBuilder builder(name, "Const");
    builder.Attr("dtype", tensor.dtype()).Attr("value", tensor);
    return Finalize(&builder);
  }

  Node* Neg(const std::string& name, Out in) {
    NodeBuilder builder(name, "Neg");
    builder.Input(in);
    return Finalize(&builder);
  }

  Node* AddN(const std::string& name, const Outs& in) {
    NodeBuilder builder(name, "AddN");
    builder.Input(in);
    return Finalize(&builder);
  }

  // Has as many outputs as inputs.
  Node* IdentityN(const std::string& name, const Outs& in) {
    NodeBuilder builder(name, "IdentityN");
    builder.Input(in);
    return Finalize(&builder);
  }

  Node* NoOp(const std::string& name) {
    NodeBuilder builder(name, "NoOp");
    return Finalize(&builder);
  }

  Node* Identity(const std::string& name, Out in) {
    NodeBuilder builder(name, "Identity");
    builder.Input(in);
    return Finalize(&builder);
  }

  // A bool scalar.
  Node* Less(const std::string& name, Out a, Out b) {
    NodeBuilder builder(name, "Less");
    builder.Input(a).Input(b);
    return Finalize(&builder);
  }

  // Output 1 is alive if `predicate` is true, and output 0 if it is false.
  Node* Switch(const std::string& name, Out in, Out predicate) {
    NodeBuilder builder(name, "Switch");
    builder.Input(in).Input(predicate);
    return Finalize(&builder);
  }

  Node* Merge(const std::string& name, const Outs& in) {
    NodeBuilder builder(name, "Merge");
    builder.Input(in);
    return Finalize(&builder);
  }

  // A marked node that uses `in`: it stays in the step.
  Node* Target(const std::string& name, const Outs& in) {
    Node* node = IdentityN(name, in);
    node->AddAttr(kTargetAttr, true);
    return node;
  }

  // An empty `shared_name` means `name`.
  Node* Iterator(const std::string& name, int components = 1,
                 const std::string& shared_name = "") {
    NodeBuilder builder(name, "IteratorV2");
    SetComponents(components, &builder);
    builder.Attr("shared_name", shared_name.empty() ? name : shared_name)
        .Attr("container", "");
    return Finalize(&builder);
  }

  Node* GetNext(const std::string& name, Node* iterator, int components = 1) {
    NodeBuilder builder(name, "IteratorGetNext");
    builder.Input(iterator);
    SetComponents(components, &builder);
    return Finalize(&builder);
  }

  // The next element of a new iterator, <name>_iterator.
  Node* Source(const std::string& name, int components = 1) {
    return GetNext(name, Iterator(name + "_iterator", components), components);
  }

  // A node that initialises `iterator` with the numbers from `start` to
  // `stop` - 1.
  Node* InitializeWithRange(const std::string& name, Node* iterator,
                            int64_t start, int64_t stop) {
    NodeBuilder range(name + "/range", "RangeDataset");
    range.Input(Const(name + "/start", start))
        .Input(Const(name + "/stop", stop))
        .Input(Const(name + "/step", 1));
    SetComponents(1, &range);
    NodeBuilder builder(name, "MakeIterator");
    builder.Input(Finalize(&range)).Input(iterator);
    return Finalize(&builder);
  }

  // A draw of a random number.
  Node* Random(const std::string& name) {
    NodeBuilder builder(name, "RandomUniformInt");
    builder.Input(EmptyShape(name + "/shape"))
        .Input(Const(name + "/min", 0))
        .Input(Const(name + "/max", int64_t{1} << 62));
    return Finalize(&builder);
  }

  Node* Placeholder(const std::string& name) {
    NodeBuilder builder(name, "Placeholder");
    builder.Attr("dtype", DT_INT64).Attr("shape", TensorShape({}));
    return Finalize(&builder);
  }

  Node* RefVariable(const std::string& name) {
    NodeBuilder builder(name, "VariableV2");
    builder.Attr("dtype", DT_INT64).Attr("shape", TensorShape({}));
    return Finalize(&builder);
  }

  // The value of a new resource variable, <name>_handle.
  Node* ReadVariable(const std::string& name) {
    NodeBuilder handle(name + "_handle", "VarHandleOp");
    handle.Attr("dtype", DT_INT64).Attr("shape", TensorShape({}));
    NodeBuilder builder(name, "ReadVariableOp");
    builder.Input(Finalize(&handle)).Attr("dtype", DT_INT64);
    return Finalize(&builder);
  }

  Node* Table(const std::string& name, const std::string& op) {
    NodeBuilder builder(name, op);
    builder.Attr("key_dtype", DT_INT64).Attr("value_dtype", DT_INT64);
    return Finalize(&builder);
  }

  Node* Lookup(const std::string& name, Node* table, Out keys) {
    NodeBuilder builder(name, "LookupTableFindV2");
    builder.Input(table).Input(keys).Input(Const(name + "/default", -1));
    return Finalize(&builder);
  }

  // A Put of the manual stage `stage`, which may have several.
  Node* Put(const std::string& name, const std::string& stage,
            const Outs& record) {
    NodeBuilder builder(name, "TensorBufferPut");
    builder.Input(record).Attr("shared_name", stage);
    return Finalize(&builder);
  }

  Node* Take(const std::string& stage, int components = 1) {
    NodeBuilder builder(stage + "/TensorBufferTake", "TensorBufferTake");
    builder.Attr("dtypes", DataTypeVector(components, DT_INT64))
        .Attr("shared_name", stage);
    return Finalize(&builder);
  }

  // Adds the ops of tf.staged(record) and returns the Take.
  Node* Stage(const std::string& stage, const Outs& record) {
    Put(stage + "/TensorBufferPut", stage, record);
    AddControlOps(stage);
    return Take(stage, record.size());
  }

  void AddControlOps(const std::string& stage) {
    for (const char* op :
         {"TensorBufferCancel", "TensorBufferResume", "TensorBufferSize"}) {
      NodeBuilder builder(strings::StrCat(stage, "/", op), op);
      builder.Attr("shared_name", stage);
      Finalize(&builder);
    }
  }

  // A node of any op, connected to nothing. Attributes that `attrs` does not
  // set get the simplest values that the op allows.
  Node* Lone(const std::string& name, const std::string& op,
             const std::map<std::string, AttrValue>& attrs = {}) {
    NodeDef def;
    def.set_name(name);
    def.set_op(op);
    const OpDef* op_def = nullptr;
    TF_CHECK_OK(graph_.flib_def().LookUpOpDef(op, &op_def));
    for (const OpDef::AttrDef& attr : op_def->attr()) {
      const auto it = attrs.find(attr.name());
      (*def.mutable_attr())[attr.name()] =
          it != attrs.end() ? it->second : SimplestValue(attr);
    }
    Status status;
    Node* node = graph_.AddNode(std::move(def), &status);
    TF_CHECK_OK(status);
    return node;
  }

  static AttrValue Attr(DataType dtype) {
    AttrValue value;
    value.set_type(dtype);
    return value;
  }

  void AddControl(Node* from, Node* to) { graph_.AddControlEdge(from, to); }

  void AddFunction(const FunctionDef& function) {
    TF_CHECK_OK(graph_.AddFunctionDef(function, {}));
  }

  const Node* Find(const std::string& name) const {
    return FindNode(graph_, name);
  }

  std::vector<std::string> Inputs(const std::string& name) const {
    return InputsOf(graph_, name);
  }

 private:
  static void SetComponents(int components, NodeBuilder* builder) {
    builder->Attr("output_types", DataTypeVector(components, DT_INT64))
        .Attr("output_shapes",
              std::vector<PartialTensorShape>(components, TensorShape({})));
  }

  Node* EmptyShape(const std::string& name) {
    const Tensor shape(DT_INT32, TensorShape({0}));
    NodeBuilder builder(name, "Const");
    builder.Attr("dtype", DT_INT32).Attr("value", shape);
    return Finalize(&builder);
  }

  static AttrValue SimplestValue(const OpDef::AttrDef& attr) {
    if (attr.has_default_value()) return attr.default_value();
    AttrValue value;
    const std::string& type = attr.type();
    const auto& allowed = attr.allowed_values().list().type();
    const DataType dtype =
        allowed.empty() || std::count(allowed.begin(), allowed.end(), DT_INT64)
            ? DT_INT64
            : static_cast<DataType>(allowed.Get(0));
    if (type == "type") value.set_type(dtype);
    if (type == "list(type)") value.mutable_list()->add_type(dtype);
    if (type == "int") value.set_i(std::max<int64_t>(1, attr.minimum()));
    if (type == "bool") value.set_b(false);
    if (type == "float") value.set_f(0);
    if (type == "string") {
      const auto& strings = attr.allowed_values().list().s();
      value.set_s(strings.empty() ? "any" : strings.Get(0));
    }
    if (type == "shape") value.mutable_shape();
    if (type == "list(shape)") value.mutable_list()->add_shape();
    if (type == "func") value.mutable_func()->set_name("any");
    if (type == "tensor")
      Tensor(int64_t{0}).AsProtoField(value.mutable_tensor());
    if (absl::StartsWith(type, "list(")) value.mutable_list();
    return value;
  }

  Graph graph_;
};

inline std::vector<std::string> Names(const std::vector<const Node*>& nodes) {
  std::vector<std::string> names;
  for (const Node* node : nodes) names.push_back(node->name());
  return names;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_TEST_GRAPH_H_
