// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_delivery.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// The attributes that tell the executor which inputs and outputs of a kernel
// are on the host although the kernel runs on an accelerator.
constexpr char kInputHostMemoryAttr[] = "_input_hostmem";
constexpr char kOutputHostMemoryAttr[] = "_output_hostmem";

// Finds out in which memory `node` has its inputs and outputs if it runs on
// `device`.
Status MemoryOn(const std::string& device, const Graph& graph, const Node& node,
                MemoryTypeVector* inputs, MemoryTypeVector* outputs) {
  DeviceNameUtils::ParsedName name;
  if (!DeviceNameUtils::ParseFullName(device, &name) || !name.has_type) {
    inputs->assign(node.num_inputs(), HOST_MEMORY);
    outputs->assign(node.num_outputs(), HOST_MEMORY);
    return OkStatus();
  }
  return MemoryTypesForNode(graph.op_registry(), DeviceType(name.type),
                            node.def(), inputs, outputs);
}

bool IsAccelerator(const std::string& device) {
  DeviceNameUtils::ParsedName name;
  return DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
         name.type != DEVICE_CPU;
}

// How the step gets a tensor of a record.
struct Carried {
  int take_output;
  // The stand-in that passes the tensor on, or null if nodes of the step use
  // the output of the Take.
  Node* stand_in = nullptr;
  int stand_in_input = 0;
  int stand_in_output = 0;
};

// Moves the records behind one Take.
class Delivery {
 public:
  Delivery(Graph* graph, Node* take) : graph_(graph), take_(take) {}

  Status Run(const std::vector<Node*>& puts) {
    TF_RETURN_IF_ERROR(FindCarried());
    TF_RETURN_IF_ERROR(ChooseDevice());
    if (device_.empty()) return OkStatus();
    std::set<int> delivered;
    for (const Carried& carried : carried_) {
      bool is_delivered = false;
      TF_RETURN_IF_ERROR(IsDelivered(carried, &is_delivered));
      if (is_delivered) delivered.insert(carried.take_output);
      if (carried.stand_in == nullptr) continue;
      if (is_delivered) {
        carried.stand_in->set_assigned_device_name(device_);
      } else {
        host_inputs_[carried.stand_in].push_back(carried.stand_in_input);
        host_outputs_[carried.stand_in].push_back(carried.stand_in_output);
      }
    }
    if (delivered.empty()) return OkStatus();
    std::vector<int> on_host;
    for (int i = 0; i < take_->num_outputs(); ++i) {
      if (delivered.count(i) == 0) on_host.push_back(i);
    }
    for (const auto& [stand_in, inputs] : host_inputs_) {
      stand_in->AddAttr(kInputHostMemoryAttr, inputs);
      stand_in->AddAttr(kOutputHostMemoryAttr, host_outputs_[stand_in]);
    }
    for (Node* put : puts) TF_RETURN_IF_ERROR(MovePut(on_host, put));
    take_->set_assigned_device_name(device_);
    take_->AddAttr(kOutputHostMemoryAttr, on_host);
    return OkStatus();
  }

 private:
  Status FindCarried() {
    for (const Edge* edge : take_->out_edges()) {
      Node* node = edge->dst();
      if (edge->IsControlEdge()) continue;
      if (!IsStandIn(*node)) {
        // One for all nodes of the step that use the output.
        const bool is_known = std::any_of(
            carried_.begin(), carried_.end(), [edge](const Carried& carried) {
              return carried.stand_in == nullptr &&
                     carried.take_output == edge->src_output();
            });
        if (!is_known) carried_.push_back({edge->src_output()});
        continue;
      }
      // A stand-in without this attribute is an Identity.
      std::vector<int> indices;
      if (!TryGetNodeAttr(node->attrs(), kIndicesAttr, &indices)) indices = {0};
      const int input = edge->dst_input();
      const int output =
          input < static_cast<int>(indices.size()) ? indices[input] : -1;
      if (output < 0 || output >= node->num_outputs()) {
        return errors::InvalidArgument(
            "Node '", node->name(), "' (", node->type_string(),
            ") has attributes of a stand-in, which SmartStage writes, but '",
            kIndicesAttr, "' names none of its ", node->num_outputs(),
            " outputs for its input ", input, ".");
      }
      carried_.push_back({edge->src_output(), node, input, output});
    }
    return OkStatus();
  }

  // Adds to `uses`, by accelerator, the number of edges by which the step uses
  // `carried` in the memory of an accelerator of the Take's task.
  Status CountUses(const Carried& carried,
                   std::map<std::string, int>* uses) const {
    const bool is_direct = carried.stand_in == nullptr;
    const Node& node = is_direct ? *take_ : *carried.stand_in;
    const int output =
        is_direct ? carried.take_output : carried.stand_in_output;
    for (const Edge* edge : node.out_edges()) {
      if (edge->src_output() != output) continue;
      if (is_direct && IsStandIn(*edge->dst())) continue;
      const std::string& device = edge->dst()->assigned_device_name();
      if (!IsAccelerator(device) ||
          !DeviceNameUtils::IsSameAddressSpace(device,
                                               take_->assigned_device_name())) {
        continue;
      }
      MemoryTypeVector inputs, outputs;
      TF_RETURN_IF_ERROR(
          MemoryOn(device, *graph_, *edge->dst(), &inputs, &outputs));
      if (inputs[edge->dst_input()] == DEVICE_MEMORY) ++(*uses)[device];
    }
    return OkStatus();
  }

  Status ChooseDevice() {
    std::map<std::string, int> uses;
    for (const Carried& carried : carried_) {
      TF_RETURN_IF_ERROR(CountUses(carried, &uses));
    }
    int most = 0;
    for (const auto& [device, count] : uses) {
      if (count > most) {
        most = count;
        device_ = device;
      }
    }
    return OkStatus();
  }

  // Sets `*delivered` to whether the record is to hold `carried` in the memory
  // of `device_`.
  Status IsDelivered(const Carried& carried, bool* delivered) const {
    std::map<std::string, int> uses;
    TF_RETURN_IF_ERROR(CountUses(carried, &uses));
    if (uses.empty() || carried.stand_in == nullptr) {
      *delivered = !uses.empty();
      return OkStatus();
    }
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(
        MemoryOn(device_, *graph_, *carried.stand_in, &inputs, &outputs));
    // Some kernels keep some types on the host, whatever the device.
    *delivered = inputs[carried.stand_in_input] == DEVICE_MEMORY;
    return OkStatus();
  }

  // Moves `put`, of whose inputs `on_host` stay in host memory. The Put copies
  // to the device what is on the host.
  Status MovePut(const std::vector<int>& on_host, Node* put) const {
    std::set<int> host_inputs(on_host.begin(), on_host.end());
    std::vector<int> copied;
    for (int i = 0; i < put->num_inputs(); ++i) {
      if (host_inputs.count(i) > 0) continue;
      bool copies = false;
      TF_RETURN_IF_ERROR(CanCopy(*put, i, &copies));
      if (copies) copied.push_back(i);
    }
    host_inputs.insert(copied.begin(), copied.end());
    put->set_assigned_device_name(device_);
    put->AddAttr(kInputHostMemoryAttr,
                 std::vector<int>(host_inputs.begin(), host_inputs.end()));
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
  Node* const take_;
  std::vector<Carried> carried_;
  std::string device_;
  std::map<Node*, std::vector<int>> host_inputs_;
  std::map<Node*, std::vector<int>> host_outputs_;
};

}  // namespace

Status DeliverToConsumers(Graph* graph) {
  std::map<BufferKey, std::vector<Node*>> puts;
  std::vector<std::pair<BufferKey, Node*>> takes;
  for (Node* node : graph->op_nodes()) {
    const std::optional<BufferKey> key = BufferOf(*node);
    if (!key) continue;
    if (IsBufferPut(*node)) puts[*key].push_back(node);
    if (IsBufferTake(*node)) takes.emplace_back(*key, node);
  }
  for (const auto& [key, take] : takes) {
    TF_RETURN_IF_ERROR(Delivery(graph, take).Run(puts[key]));
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

}  // namespace staging
}  // namespace tensorflow
