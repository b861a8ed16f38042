// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/puts_and_takes.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/hash.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"

namespace tensorflow {
namespace staging {
namespace {

std::string Container(const std::string& session, const std::string& content) {
  return absl::StrCat(
      "staging.",
      absl::Hex(Hash64(absl::StrCat(session, "|", content)), absl::kZeroPad16));
}

// Moves `op`, a node of the plan, to `container`.
void SetContainer(const std::string& container, const Node& op, Graph* graph) {
  Node* node = graph->FindNodeId(op.id());
  node->ClearAttr(kContainerAttr);
  node->AddAttr(kContainerAttr, container);
}

DataTypeVector DtypesOf(const StagedRegion& region) {
  DataTypeVector dtypes;
  for (const StagedTensor& tensor : region.boundary) {
    dtypes.push_back(BaseType(tensor.node->output_type(tensor.index)));
  }
  return dtypes;
}

void AddRecord(const RegionClones& clones, NodeBuilder* builder) {
  builder->Input(clones.record);
  for (Node* node : clones.control_inputs) builder->ControlInput(node);
}

// Finishes a Take that yields records of the stage's region.
Status FinalizeTake(const PlannedStage& stage,
                    const std::vector<PartialTensorShape>& shapes,
                    NodeBuilder* builder, Graph* graph, Node** take) {
  builder->Attr(kDtypesAttr, DtypesOf(*stage.region)).Attr(kShapesAttr, shapes);
  TF_RETURN_IF_ERROR(builder->Finalize(graph, take));
  return OkStatus();
}

// Sets the attributes by which an op of a stage that SmartStage found finds its
// buffer.
void SetBuffer(const PlannedStage& stage, const std::string& container,
               const BufferSettings& buffer, NodeBuilder* builder) {
  builder->Attr(kSharedNameAttr, stage.name)
      .Attr(kContainerAttr, container)
      .Attr(kCapacityAttr, buffer.capacity)
      .Attr(kCapacityBytesAttr, buffer.capacity_bytes)
      .Attr(kDeviceCapacityBytesAttr, buffer.device_capacity_bytes);
}

void ColocateWith(const Node& put, NodeBuilder* builder) {
  builder->Attr(kColocationAttrName, ColocatedWith(put))
      .Device(put.requested_device());
}

Status AddPut(const PlannedStage& stage, const std::string& container,
              const BufferSettings& buffer, const RegionClones& clones,
              Graph* graph, Node** put) {
  NodeBuilder builder(stage.NodeName(kPutOp), kPutOp);
  AddRecord(clones, &builder);
  builder.Attr(kTimeoutMillisAttr, buffer.timeout_millis)
      .Device(CpuOfTask(*stage.region->sources.front()));
  if (buffer.stream_id != 0) builder.Attr(kStreamAttr, buffer.stream_id);
  if (buffer.is_ordered) builder.Attr(kIsOrderedAttr, true);
  SetBuffer(stage, container, buffer, &builder);
  return builder.Finalize(graph, put);
}

Status AddControlOps(const PlannedStage& stage, const std::string& container,
                     const BufferSettings& buffer, const Node& put,
                     Graph* graph) {
  Node* code = nullptr;
  TF_RETURN_IF_ERROR(AddConstant(stage.NodeName("error_code"), Tensor(int32{0}),
                                 put.requested_device(), graph, &code));
  Node* message = nullptr;
  TF_RETURN_IF_ERROR(AddConstant(stage.NodeName("error_message"),
                                 Tensor(tstring()), put.requested_device(),
                                 graph, &message));
  for (const char* op :
       {kCancelOp, kResumeOp, kCloseOp, kSizeOp, kStatsOp, kDiscardOp}) {
    NodeBuilder builder(stage.NodeName(op), op);
    if (absl::string_view(op) == kCloseOp) {
      builder.Input(code).Input(message);
    }
    SetBuffer(stage, container, buffer, &builder);
    ColocateWith(put, &builder);
    Node* added = nullptr;
    TF_RETURN_IF_ERROR(builder.Finalize(graph, &added));
  }
  return OkStatus();
}

// Copies the device and the attributes of `from`, except those that describe
// the record and the container, which the caller sets.
void CopyDeviceAndAttrs(const Node& from, NodeBuilder* builder) {
  for (const auto& [name, value] : from.attrs()) {
    if (name != kDtypesAttr && name != kShapesAttr && name != kContainerAttr) {
      builder->Attr(name, value);
    }
  }
  builder->Device(from.requested_device());
}

}  // namespace

std::string ContainerOfRegion(const PlannedStage& stage,
                              const std::string& session) {
  const DataTypeVector dtypes = DtypesOf(*stage.region);
  std::string content = stage.name;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    absl::StrAppend(&content, "|", stage.region->boundary[i].name(), "|",
                    DataTypeString(dtypes[i]));
  }
  return Container(session, content);
}

void MoveToSession(const PlannedStage& stage, const std::string& session,
                   Graph* graph) {
  std::vector<const Node*> ops = stage.control_ops;
  ops.insert(ops.end(), stage.puts.begin(), stage.puts.end());
  ops.push_back(stage.take);
  for (const Node* op : ops) {
    std::string container;
    if (TryGetNodeAttr(op->attrs(), kContainerAttr, &container) &&
        !container.empty()) {
      continue;
    }
    SetContainer(Container(session, stage.name), *op, graph);
  }
}

Status AddBufferNodes(const PlannedStage& stage, const std::string& container,
                      const BufferSettings& buffer, const RegionClones& clones,
                      const std::vector<PartialTensorShape>& shapes,
                      Graph* graph, Node** put, Node** take) {
  TF_RETURN_IF_ERROR(AddPut(stage, container, buffer, clones, graph, put));
  TF_RETURN_IF_ERROR(AddControlOps(stage, container, buffer, **put, graph));
  NodeBuilder builder(stage.NodeName(kTakeOp), kTakeOp);
  SetBuffer(stage, container, buffer, &builder);
  ColocateWith(**put, &builder);
  return FinalizeTake(stage, shapes, &builder, graph, take);
}

Status ExtendPut(Node* old_put, const std::string& container,
                 const RegionClones& clones, Graph* graph, Node** put) {
  NodeBuilder builder(old_put->name(), kPutOp);
  AddRecord(clones, &builder);
  for (const Edge* edge : old_put->in_edges()) {
    if (edge->IsControlEdge() && edge->src()->IsOp()) {
      builder.ControlInput(edge->src());
    }
  }
  CopyDeviceAndAttrs(*old_put, &builder);
  builder.Attr(kContainerAttr, container);
  TF_RETURN_IF_ERROR(builder.Finalize(graph, put));
  MoveUsers(old_put, *put, graph);
  graph->RemoveNode(old_put);
  return OkStatus();
}

Status AddPutCheck(Node* put, Graph* graph) {
  Node* done = nullptr;
  TF_RETURN_IF_ERROR(AddConstant(absl::StrCat(put->name(), kPutDoneSuffix),
                                 Tensor(true), CpuOfTask(*put), graph, &done));
  graph->AddControlEdge(put, done);
  return OkStatus();
}

Status ExtendTake(const PlannedStage& stage, const std::string& name,
                  const std::string& container,
                  const std::vector<PartialTensorShape>& shapes, Graph* graph,
                  Node** take) {
  for (const Node* op : stage.control_ops) SetContainer(container, *op, graph);
  const absl::flat_hash_set<const Node*> region(stage.region->nodes.begin(),
                                                stage.region->nodes.end());
  NodeBuilder builder(name, kTakeOp);
  CopyDeviceAndAttrs(*stage.take, &builder);
  builder.Attr(kContainerAttr, container);
  for (const Edge* edge : stage.take->in_edges()) {
    // The nodes of the region have run before the record is put.
    if (edge->src()->IsOp() && !region.contains(edge->src())) {
      builder.ControlInput(edge->src());
    }
  }
  return FinalizeTake(stage, shapes, &builder, graph, take);
}

}  // namespace staging
}  // namespace tensorflow
