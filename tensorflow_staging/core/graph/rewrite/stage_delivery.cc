// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_delivery.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/rewrite/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// Moves the records behind one Take.
class Delivery {
 public:
  Delivery(Graph* graph, Node* take) : graph_(graph), uses_(*graph, take) {}

  // `others` are further Takes of the stage, which take the same records.
  Status Run(const std::vector<Node*>& puts, const std::vector<Node*>& others) {
    TF_RETURN_IF_ERROR(uses_.Find());
    if (uses_.device().empty()) return OkStatus();
    std::set<int> delivered;
    for (const Carried& carried : uses_.carried()) {
      bool is_delivered = false;
      TF_RETURN_IF_ERROR(IsDelivered(carried, &is_delivered));
      if (is_delivered) delivered.insert(carried.take_output);
    }
    if (delivered.empty()) return OkStatus();
    for (Node* put : puts) TF_RETURN_IF_ERROR(MovePut(delivered, put));
    uses_.MoveTake(uses_.device(), delivered);
    for (Node* other : others) {
      RecordUses uses(*graph_, other);
      TF_RETURN_IF_ERROR(uses.Find());
      uses.MoveTake(uses_.device(), delivered);
    }
    return OkStatus();
  }

 private:
  // Sets `*delivered` to whether the record is to hold `carried` in the memory
  // of `device_`.
  Status IsDelivered(const Carried& carried, bool* delivered) const {
    TF_RETURN_IF_ERROR(uses_.IsUsedOnAccelerator(carried, delivered));
    if (!*delivered || carried.stand_in == nullptr) return OkStatus();
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(MemoryOn(uses_.device(), *graph_, *carried.stand_in,
                                &inputs, &outputs));
    // Some kernels keep some types on the host, whatever the device.
    *delivered = inputs[carried.stand_in_input] == DEVICE_MEMORY;
    return OkStatus();
  }

  // Moves `put`, of whose inputs those that are not `delivered` stay in host
  // memory. The Put copies to the device what is on the host.
  Status MovePut(const std::set<int>& delivered, Node* put) const {
    std::vector<int> on_host, copied;
    for (int i = 0; i < put->num_inputs(); ++i) {
      const bool is_delivered = delivered.count(i) > 0;
      bool copies = false;
      if (is_delivered) TF_RETURN_IF_ERROR(CanCopy(*put, i, &copies));
      if (copies) copied.push_back(i);
      if (copies || !is_delivered) on_host.push_back(i);
    }
    put->set_assigned_device_name(uses_.device());
    put->AddAttr(kInputHostMemoryAttr, on_host);
    if (!copied.empty()) put->AddAttr(kCopiedInputsAttr, copied);
    return OkStatus();
  }

  // Sets `*copies` to whether input `i` of `put` is on the host, and is a
  // tensor that can be copied as bytes.
  Status CanCopy(const Node& put, int i, bool* copies) const {
    *copies = false;
    if (!DataTypeCanUseMemcpy(put.input_type(i))) return OkStatus();
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(put.input_edge(i, &edge));
    const Node& source = *edge->src();
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(MemoryOn(source.assigned_device_name(), *graph_, source,
                                &inputs, &outputs));
    *copies = !IsAccelerator(source.assigned_device_name()) ||
              outputs[edge->src_output()] == HOST_MEMORY;
    return OkStatus();
  }

  Graph* const graph_;
  RecordUses uses_;
};

bool AreHandedOver(const StageRecords& stage) {
  return std::any_of(stage.puts.begin(), stage.puts.end(), [](const Node* put) {
    return put->attrs().Find(kHandsOverAttr) != nullptr;
  });
}

}  // namespace

Status DeliverToConsumers(Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    if (AreHandedOver(stage) || stage.takes.empty()) continue;
    // The first Take is that of the stage itself; those of late sources come
    // after it.
    TF_RETURN_IF_ERROR(
        Delivery(graph, stage.takes.front())
            .Run(stage.puts, {stage.takes.begin() + 1, stage.takes.end()}));
  }
  return OkStatus();
}

void MoveControlOpsToCpu(Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (!IsBufferOp(*node) || IsBufferPut(*node) || IsBufferTake(*node) ||
        !IsAccelerator(node->assigned_device_name())) {
      continue;
    }
    DeviceNameUtils::ParsedName name;
    DeviceNameUtils::ParseFullName(node->assigned_device_name(), &name);
    name.type = DEVICE_CPU;
    name.id = 0;
    node->set_assigned_device_name(DeviceNameUtils::ParsedNameToString(name));
  }
}

void ForgetDevicesOfBufferOps(Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (IsBufferOp(*node)) node->set_assigned_device_name("");
  }
}

}  // namespace staging
}  // namespace tensorflow
