// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/stage_delivery.h"

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// Whether input `i` of `put` comes from host memory.
Status IsFromHost(const Graph& graph, const Node& put, int i, bool* from_host) {
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(put.input_edge(i, &edge));
  const std::string& device = edge->src()->assigned_device_name();
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(MemoryOn(device, graph, *edge->src(), &inputs, &outputs));
  *from_host =
      !IsAccelerator(device) || outputs[edge->src_output()] == HOST_MEMORY;
  return OkStatus();
}

// Sets `*for_device` to whether the record is to hold `carried` in the memory
// of the accelerator `device`.
Status IsForDevice(const Graph& graph, const RecordUses& uses,
                   const std::string& device, const Carried& carried,
                   bool* for_device) {
  TF_RETURN_IF_ERROR(uses.IsUsedOnAccelerator(carried, for_device));
  if (!*for_device || carried.stand_in == nullptr) return OkStatus();
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(
      MemoryOn(device, graph, *carried.stand_in, &inputs, &outputs));
  // Some kernels keep some types on the host, whatever the device.
  *for_device = inputs[carried.stand_in_input] == DEVICE_MEMORY;
  return OkStatus();
}

// Moves the records behind one Take to where the step uses them.
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
      TF_RETURN_IF_ERROR(
          IsForDevice(*graph_, uses_, uses_.device(), carried, &is_delivered));
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
    return IsFromHost(*graph_, put, i, copies);
  }

  Graph* const graph_;
  RecordUses uses_;
};

// Keeps on the host what the records of `stage` need not hold on their device.
Status KeepRecordsOnHost(const Graph& graph, const StageRecords& stage) {
  const std::string device = stage.takes.front()->assigned_device_name();
  std::set<int> on_device;
  for (const Node* put : stage.puts) {
    for (int i = 0; i < put->num_inputs(); ++i) {
      bool from_host = false;
      TF_RETURN_IF_ERROR(IsFromHost(graph, *put, i, &from_host));
      if (!from_host) on_device.insert(i);
    }
  }
  std::vector<RecordUses> takes;
  for (Node* take : stage.takes) {
    takes.emplace_back(graph, take);
    TF_RETURN_IF_ERROR(takes.back().Find());
    for (const Carried& carried : takes.back().carried()) {
      bool is_used = false;
      TF_RETURN_IF_ERROR(
          IsForDevice(graph, takes.back(), device, carried, &is_used));
      if (is_used) on_device.insert(carried.take_output);
    }
  }
  for (Node* put : stage.puts) {
    std::vector<int> on_host;
    for (int i = 0; i < put->num_inputs(); ++i) {
      if (on_device.count(i) == 0) on_host.push_back(i);
    }
    put->AddAttr(kInputHostMemoryAttr, on_host);
  }
  for (RecordUses& uses : takes) uses.MoveTake(device, on_device);
  return OkStatus();
}

// Whether all ops of the stage are on one accelerator.
bool IsOnOneAccelerator(const StageRecords& stage) {
  const std::string& device = stage.takes.front()->assigned_device_name();
  const auto is_there = [&device](const Node* node) {
    return node->assigned_device_name() == device;
  };
  return IsAccelerator(device) && absl::c_all_of(stage.puts, is_there) &&
         absl::c_all_of(stage.takes, is_there);
}

bool AreHandedOver(const StageRecords& stage) {
  return absl::c_any_of(stage.puts, [](const Node* put) {
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

Status KeepOnHost(Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    if (stage.takes.empty() || AreHandedOver(stage) ||
        !IsOnOneAccelerator(stage)) {
      continue;
    }
    TF_RETURN_IF_ERROR(KeepRecordsOnHost(*graph, stage));
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
