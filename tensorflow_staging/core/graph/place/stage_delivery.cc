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

// The uses of the records behind each Take of a stage.
Status FindUses(const Graph& graph, const StageRecords& stage,
                std::vector<RecordUses>* uses) {
  for (Node* take : stage.takes) {
    uses->emplace_back(graph, take);
    TF_RETURN_IF_ERROR(uses->back().Find());
  }
  return OkStatus();
}

// Adds to `*held` the tensors of a record that it is to hold in the memory of
// the accelerator `device`.
Status AddHeld(const Graph& graph, const RecordUses& uses,
               const std::string& device, std::set<int>* held) {
  for (const Carried& carried : uses.carried()) {
    bool is_held = false;
    TF_RETURN_IF_ERROR(uses.IsUsedOnAccelerator(carried, &is_held));
    if (is_held && carried.stand_in != nullptr) {
      // Some kernels keep some types on the host, whatever the device.
      MemoryTypeVector inputs, outputs;
      TF_RETURN_IF_ERROR(
          MemoryOn(device, graph, *carried.stand_in, &inputs, &outputs));
      is_held = inputs[carried.stand_in_input] == DEVICE_MEMORY;
    }
    if (is_held) held->insert(carried.take_output);
  }
  return OkStatus();
}

// Moves `put` to `device`, where the record holds `held`; its other inputs stay
// in host memory. The Put copies to the device what is on the host, and can be
// copied as bytes.
Status MovePut(const Graph& graph, const std::string& device,
               const std::set<int>& held, Node* put) {
  std::vector<int> on_host, copied;
  for (int i = 0; i < put->num_inputs(); ++i) {
    const bool is_held = held.count(i) > 0;
    bool copies = false;
    if (is_held && DataTypeCanUseMemcpy(put->input_type(i))) {
      TF_RETURN_IF_ERROR(IsFromHost(graph, *put, i, &copies));
    }
    if (copies) copied.push_back(i);
    if (copies || !is_held) on_host.push_back(i);
  }
  put->set_assigned_device_name(device);
  put->AddAttr(kInputHostMemoryAttr, on_host);
  if (!copied.empty()) put->AddAttr(kCopiedInputsAttr, copied);
  return OkStatus();
}

// Moves the records of `stage` to where the step uses them.
Status Deliver(const Graph& graph, const StageRecords& stage) {
  std::vector<RecordUses> uses;
  TF_RETURN_IF_ERROR(FindUses(graph, stage, &uses));
  // The first Take is that of the stage itself; those of late sources come
  // after it, and take the same records.
  const std::string device = uses.front().device();
  if (device.empty()) return OkStatus();
  std::set<int> held;
  TF_RETURN_IF_ERROR(AddHeld(graph, uses.front(), device, &held));
  if (held.empty()) return OkStatus();
  for (Node* put : stage.puts) {
    TF_RETURN_IF_ERROR(MovePut(graph, device, held, put));
  }
  for (RecordUses& of_take : uses) of_take.MoveTake(device, held);
  return OkStatus();
}

// Keeps on the host what the records of `stage` need not hold on their device.
Status KeepRecordsOnHost(const Graph& graph, const StageRecords& stage) {
  const std::string device = stage.takes.front()->assigned_device_name();
  std::set<int> held;
  for (const Node* put : stage.puts) {
    for (int i = 0; i < put->num_inputs(); ++i) {
      bool from_host = false;
      TF_RETURN_IF_ERROR(IsFromHost(graph, *put, i, &from_host));
      if (!from_host) held.insert(i);
    }
  }
  std::vector<RecordUses> uses;
  TF_RETURN_IF_ERROR(FindUses(graph, stage, &uses));
  for (const RecordUses& of_take : uses) {
    TF_RETURN_IF_ERROR(AddHeld(graph, of_take, device, &held));
  }
  for (Node* put : stage.puts) {
    put->AddAttr(kInputHostMemoryAttr, IndicesWithout(held, put->num_inputs()));
  }
  for (RecordUses& of_take : uses) of_take.MoveTake(device, held);
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

// Whether a Put of the stage has the attribute `attr`.
bool IsMarked(const StageRecords& stage, const char* attr) {
  return absl::c_any_of(stage.puts, [attr](const Node* put) {
    return put->attrs().Find(attr) != nullptr;
  });
}

}  // namespace

Status PlaceRecords(Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    if (stage.takes.empty() || IsMarked(stage, kHandsOverAttr)) continue;
    if (IsMarked(stage, kDeliversAttr)) {
      TF_RETURN_IF_ERROR(Deliver(*graph, stage));
    } else if (IsOnOneAccelerator(stage)) {
      TF_RETURN_IF_ERROR(KeepRecordsOnHost(*graph, stage));
    }
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
