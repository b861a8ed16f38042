// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/stage_delivery.h"

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/device_shares.h"
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

// Whether a record can hold `carried` in the memory of the accelerator `device`:
// some kernels keep some types on the host, whatever the device.
Status CanHold(const Graph& graph, const Carried& carried,
               const std::string& device, bool* can) {
  *can = true;
  if (carried.stand_in == nullptr) return OkStatus();
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(
      MemoryOn(device, graph, *carried.stand_in, &inputs, &outputs));
  *can = inputs[carried.stand_in_input] == DEVICE_MEMORY;
  return OkStatus();
}

// Adds to `*held` the tensors that the step uses on any accelerator, and a record
// can hold in the memory of the accelerator `device`.
Status AddHeld(const Graph& graph, const RecordUses& uses,
               const std::string& device, std::set<int>* held) {
  for (const Carried& carried : uses.carried()) {
    std::set<std::string> devices;
    TF_RETURN_IF_ERROR(uses.FindDevices(carried, &devices));
    bool can_hold = false;
    TF_RETURN_IF_ERROR(CanHold(graph, carried, device, &can_hold));
    if (can_hold && !devices.empty()) held->insert(carried.take_output);
  }
  return OkStatus();
}

// Whether any accelerator can get tensor `i` of a record from the host, ahead of
// the step.
Status IsCopiedFromHost(const Graph& graph, const StageRecords& stage, int i,
                        bool* is_copied) {
  *is_copied = false;
  for (const Node* put : stage.puts) {
    *is_copied =
        i < put->num_inputs() && DataTypeCanUseMemcpy(put->input_type(i));
    if (*is_copied) {
      TF_RETURN_IF_ERROR(IsFromHost(graph, *put, i, is_copied));
    }
    if (!*is_copied) break;
  }
  return OkStatus();
}

// Chooses where the records of `stage` are. `uses` are those of its Take.
Status FindPlaces(const Graph& graph, const StageRecords& stage,
                  const RecordUses& uses, RecordPlaces* places) {
  if (uses.device().empty()) return OkStatus();
  for (const Carried& carried : uses.carried()) {
    const int i = carried.take_output;
    std::set<std::string> devices;
    TF_RETURN_IF_ERROR(uses.FindDevices(carried, &devices));
    bool is_copied = false;
    TF_RETURN_IF_ERROR(IsCopiedFromHost(graph, stage, i, &is_copied));
    bool can_hold = false;
    TF_RETURN_IF_ERROR(CanHold(graph, carried, uses.device(), &can_hold));
    // TensorFlow copies what cannot be shared from one accelerator to another.
    const bool is_held =
        is_copied ? devices.count(uses.device()) > 0 : !devices.empty();
    if (can_hold && is_held) places->held.insert(i);
    if (!is_copied) continue;
    for (const std::string& device : devices) {
      if (device != uses.device()) places->shares[device].insert(i);
    }
  }
  if (!places->held.empty() || !places->shares.empty()) {
    places->device = uses.device();
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

// Moves the records of `stage` to where the step uses them, unless `*all` says
// where they are.
Status Deliver(const Graph& graph, const StageRecords& stage,
               PlacesOfStages* all) {
  std::vector<RecordUses> uses;
  TF_RETURN_IF_ERROR(FindUses(graph, stage, &uses));
  // The first Take is that of the stage itself; those of late sources come
  // after it, and take the same records.
  const auto [known, is_new] =
      all->emplace(*BufferOf(*stage.takes.front()), RecordPlaces());
  RecordPlaces& places = known->second;
  if (is_new) {
    TF_RETURN_IF_ERROR(FindPlaces(graph, stage, uses.front(), &places));
  }
  if (places.device.empty()) return OkStatus();
  for (Node* put : stage.puts) {
    TF_RETURN_IF_ERROR(MovePut(graph, places.device, places.held, put));
    WriteShares(places.shares, put);
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    uses[i].MoveTake(places.device, places.held);
    WriteShares(places.shares, stage.takes[i]);
  }
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

Status PlaceRecords(PlacesOfStages* places, Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    if (stage.takes.empty() || IsMarked(stage, kHandsOverAttr)) continue;
    if (IsMarked(stage, kDeliversAttr)) {
      TF_RETURN_IF_ERROR(Deliver(*graph, stage, places));
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
