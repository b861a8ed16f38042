// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_STAGE_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_TESTING_STAGE_GRAPH_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

// Adds one stage to a graph, for tests. The stage has the ops that tf.staged()
// creates, under the same names:
//
//   <record> -> <name>/TensorBufferPut     <name>/TensorBufferTake ->
//   <name>/TensorBufferCancel, Resume, Discard, Size, Stats
//   <name>/error_code, <name>/error_message -> <name>/TensorBufferClose
//
// where <record> is an int64 from another node of the graph. The buffer is in
// the container kContainer.
struct StageTestGraph {
  static constexpr char kContainer[] = "stage-test";

  std::string name = "prefetch";
  // In records.
  int64_t capacity = 1;
  // How long a put waits for room; 0 waits without limit.
  int64_t timeout_millis = 0;

  // Returns the full name of a node of the stage.
  std::string Node(const std::string& node) const {
    return strings::StrCat(name, "/", node);
  }

  // Returns a builder of the stage's node of op type `op`.
  NodeDefBuilder Op(const std::string& op) const {
    return NodeDefBuilder(Node(op), op)
        .Attr("shared_name", name)
        .Attr("container", kContainer)
        .Attr("capacity", capacity);
  }

  static NodeDefBuilder Const(const std::string& name, const Tensor& value) {
    return NodeDefBuilder(name, "Const")
        .Attr("dtype", value.dtype())
        .Attr("value", value);
  }

  static void Add(NodeDefBuilder builder, GraphDef* graph) {
    TF_CHECK_OK(builder.Finalize(graph->add_node()));
  }

  // Adds a stage whose records are the first output of the node `record`.
  void AddTo(GraphDef* graph, const std::string& record) const {
    Add(Op("TensorBufferPut")
            .Attr("timeout_millis", timeout_millis)
            .Input(std::vector<NodeDefBuilder::NodeOut>{{record, 0, DT_INT64}}),
        graph);
    Add(Op("TensorBufferTake").Attr("dtypes", DataTypeVector{DT_INT64}), graph);
    Add(Op("TensorBufferCancel"), graph);
    Add(Op("TensorBufferResume"), graph);
    Add(Op("TensorBufferDiscard"), graph);
    Add(Op("TensorBufferSize"), graph);
    Add(Op("TensorBufferStats"), graph);
    Add(Const(Node("error_code"), Tensor(int32{0})), graph);
    Add(Const(Node("error_message"), Tensor("")), graph);
    Add(Op("TensorBufferClose")
            .Input(Node("error_code"), 0, DT_INT32)
            .Input(Node("error_message"), 0, DT_STRING),
        graph);
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_STAGE_GRAPH_H_
