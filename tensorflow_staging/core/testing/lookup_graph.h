// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_LOOKUP_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_TESTING_LOOKUP_GRAPH_H_

#include <string>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {

// A TestGraph with embeddings: variables of int64 vectors.
class LookupGraph : public TestGraph {
 public:
  struct Step {
    Node* table;
    Node* row;
    Node* twice;
  };

  // Adds a step that looks up the rows for `ids`, adds twice their value to a
  // weight, and updates them with the sum. The nodes have the names of their
  // fields; "update" uses "loss".
  Step AddStep(Out ids) {
    Step step;
    step.table = Handle("table");
    step.row = ResourceGather("row", step.table, ids);
    step.twice = AddN("twice", {step.row, step.row});
    Node* loss = AddN("loss", {step.twice, ReadVariable("weight")});
    Update("update", step.table, ids, loss);
    return step;
  }

  // A resource variable.
  Node* Handle(const std::string& name) {
    NodeBuilder builder(name, "VarHandleOp");
    builder.Attr("dtype", DT_INT64)
        .Attr("shape", TensorShape({10}))
        .Attr("shared_name", name);
    return Finalize(&builder);
  }

  // The whole value of a resource variable.
  Node* Read(const std::string& name, Node* handle) {
    NodeBuilder builder(name, "ReadVariableOp");
    builder.Input(handle).Attr("dtype", DT_INT64);
    return Finalize(&builder);
  }

  Node* ResourceGather(const std::string& name, Node* handle, Out ids) {
    NodeBuilder builder(name, "ResourceGather");
    builder.Input(handle).Input(ids).Attr("dtype", DT_INT64);
    return Finalize(&builder);
  }

  Node* Gather(const std::string& name, Out value, Out ids) {
    NodeBuilder builder(name, "GatherV2");
    builder.Input(value).Input(ids).Input(Const(name + "/axis", 0));
    return Finalize(&builder);
  }

  // Adds `value` to rows of a resource variable.
  Node* Update(const std::string& name, Node* handle, Out ids, Out value) {
    NodeBuilder builder(name, "ResourceScatterAdd");
    builder.Input(handle).Input(ids).Input(value).Attr("dtype", DT_INT64);
    return Finalize(&builder);
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_LOOKUP_GRAPH_H_
