// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/checkpoint_nodes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/rewrite/buffer_op.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns the names of the tensors of the stage's record, as they are without
// the scope in which the region runs.
Status TensorNames(const CheckpointedStage& stage,
                   std::vector<std::string>* names) {
  std::vector<const Edge*> edges;
  TF_RETURN_IF_ERROR(stage.put->input_edges(&edges));
  const std::string scope = absl::StrCat(stage.name, "/staged/");
  for (const Edge* edge : edges) {
    absl::string_view node = edge->src()->name();
    absl::ConsumePrefix(&node, scope);
    names->push_back(absl::StrCat(node, ":", edge->src_output()));
  }
  return OkStatus();
}

// Gives `node` another name, in the scope of `stage`, and returns the old one.
std::string Rename(const std::string& stage, const char* scope, Node* node) {
  std::string name = node->name();
  node->set_name(absl::StrCat(stage, "/", scope, "/", name));
  return name;
}

// Lets the users of `from`, apart from ops of type `except`, use `to` instead.
void MoveUsers(Node* from, Node* to, const char* except, Graph* graph) {
  const std::vector<const Edge*> edges(from->out_edges().begin(),
                                       from->out_edges().end());
  for (const Edge* edge : edges) {
    if (!edge->dst()->IsOp() || edge->dst()->type_string() == except) continue;
    graph->AddEdge(to, edge->src_output(), edge->dst(), edge->dst_input());
    graph->RemoveEdge(edge);
  }
}

}  // namespace

Status AddPause(const CheckpointedStage& stage,
                const std::vector<Node*>& savers, Graph* graph, Node** pause) {
  *pause = nullptr;
  if (savers.empty()) return OkStatus();
  TF_RETURN_IF_ERROR(
      BufferOp(absl::StrCat(stage.name, "/", kPauseOp), kPauseOp, *stage.put)
          .Finalize(graph, pause));
  for (Node* saver : savers) graph->AddControlEdge(*pause, saver);
  return OkStatus();
}

Status SaveRecordsWith(const std::vector<CheckpointedStage>& stages,
                       Node* saver, Graph* graph) {
  const std::string name = Rename(stages.front().name, "saved", saver);
  Node* position = saver;
  for (const CheckpointedStage& stage : stages) {
    std::vector<std::string> tensor_names;
    TF_RETURN_IF_ERROR(TensorNames(stage, &tensor_names));
    Node* save = nullptr;
    const bool is_last = &stage == &stages.back();
    TF_RETURN_IF_ERROR(
        BufferOp(
            is_last ? name : absl::StrCat(stage.name, "/", kSaveOp, "/", name),
            kSaveOp, *stage.put)
            .Input(position)
            .Attr(kStageNameAttr, stage.name)
            .Attr(kTensorNamesAttr, tensor_names)
            .Finalize(graph, &save));
    position = save;
  }
  MoveUsers(saver, position, kSaveOp, graph);
  return OkStatus();
}

Status RestoreRecordsWith(const std::vector<CheckpointedStage>& stages,
                          Node* restorer, Graph* graph) {
  const std::string name = Rename(stages.front().name, "restored", restorer);
  const Edge* saved_edge = nullptr;
  TF_RETURN_IF_ERROR(restorer->input_edge(1, &saved_edge));
  const NodeBuilder::NodeOut saved(saved_edge->src(), saved_edge->src_output());

  std::vector<std::string> stage_names;
  std::vector<Node*> restores;
  for (const CheckpointedStage& stage : stages) {
    std::vector<std::string> tensor_names;
    TF_RETURN_IF_ERROR(TensorNames(stage, &tensor_names));
    DataTypeVector dtypes;
    TF_RETURN_IF_ERROR(GetNodeAttr(stage.put->attrs(), kDtypesAttr, &dtypes));
    TF_RETURN_IF_ERROR(
        BufferOp(absl::StrCat(stage.name, "/", kRestoreOp, "/", name),
                 kRestoreOp, *stage.put)
            .Input(saved)
            .ControlInput(restorer)
            .Attr(kStageNameAttr, stage.name)
            .Attr(kTensorNamesAttr, tensor_names)
            .Attr(kDtypesAttr, dtypes)
            .Finalize(graph, &restores.emplace_back()));
    stage_names.push_back(stage.name);
  }

  Node* done = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder(name, "NoOp")
                         .ControlInputs(restores)
                         .Device(restorer->requested_device())
                         .Finalize(graph, &done));
  MoveUsers(restorer, done, kRestoreOp, graph);

  NodeBuilder position_builder(
      absl::StrCat(stages.front().name, "/", kIteratorPositionOp, "/", name),
      kIteratorPositionOp);
  position_builder.Input(saved)
      .Attr(kStagesAttr, stage_names)
      .Device(restorer->requested_device());
  if (const AttrValue* group = restorer->attrs().Find(kColocationAttrName)) {
    position_builder.Attr(kColocationAttrName, *group);
  }
  Node* position = nullptr;
  TF_RETURN_IF_ERROR(position_builder.Finalize(graph, &position));
  graph->RemoveEdge(saved_edge);
  graph->AddEdge(position, 0, restorer, 1);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
