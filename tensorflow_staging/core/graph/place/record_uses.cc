// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/record_uses.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
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

std::vector<int> IndicesWithout(const std::set<int>& some, int size) {
  std::vector<int> others;
  for (int i = 0; i < size; ++i) {
    if (some.count(i) == 0) others.push_back(i);
  }
  return others;
}

std::vector<StageRecords> FindStageRecords(const Graph& graph) {
  std::map<BufferKey, StageRecords> stages;
  for (Node* node : graph.op_nodes()) {
    const std::optional<BufferKey> key = BufferOf(*node);
    if (!key) continue;
    if (IsBufferPut(*node)) stages[*key].puts.push_back(node);
    if (IsBufferTake(*node)) stages[*key].takes.push_back(node);
  }
  std::vector<StageRecords> found;
  for (auto& [key, stage] : stages) found.push_back(std::move(stage));
  return found;
}

Status RecordUses::Find() {
  TF_RETURN_IF_ERROR(FindCarried());
  std::map<std::string, int> counts;
  for (const Carried& carried : carried_) {
    std::vector<const Edge*> uses;
    TF_RETURN_IF_ERROR(FindUses(carried, &uses));
    for (const Edge* use : uses) ++counts[use->dst()->assigned_device_name()];
  }
  int most = 0;
  for (const auto& [device, count] : counts) {
    if (count > most) {
      most = count;
      device_ = device;
    }
  }
  return OkStatus();
}

Status RecordUses::FindDevices(const Carried& carried,
                               std::set<std::string>* devices) const {
  std::vector<const Edge*> uses;
  TF_RETURN_IF_ERROR(FindUses(carried, &uses));
  devices->clear();
  for (const Edge* use : uses) {
    devices->insert(use->dst()->assigned_device_name());
  }
  return OkStatus();
}

void RecordUses::MoveTake(const std::string& device,
                          const std::set<int>& delivered) {
  std::map<Node*, std::pair<std::vector<int>, std::vector<int>>> on_host;
  for (const Carried& carried : carried_) {
    if (carried.stand_in == nullptr) continue;
    if (delivered.count(carried.take_output) > 0) {
      carried.stand_in->set_assigned_device_name(device);
    } else {
      auto& [inputs, outputs] = on_host[carried.stand_in];
      inputs.push_back(carried.stand_in_input);
      outputs.push_back(carried.stand_in_output);
    }
  }
  for (const auto& [stand_in, tensors] : on_host) {
    stand_in->AddAttr(kInputHostMemoryAttr, tensors.first);
    stand_in->AddAttr(kOutputHostMemoryAttr, tensors.second);
  }
  take_->set_assigned_device_name(device);
  take_->AddAttr(kOutputHostMemoryAttr,
                 IndicesWithout(delivered, take_->num_outputs()));
}

Status RecordUses::FindCarried() {
  for (const Edge* edge : take_->out_edges()) {
    Node* node = edge->dst();
    if (edge->IsControlEdge()) continue;
    if (!IsStandIn(*node)) {
      // One for all nodes of the step that use the output.
      const bool is_known =
          absl::c_any_of(carried_, [edge](const Carried& carried) {
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

Status RecordUses::FindUses(const Carried& carried,
                            std::vector<const Edge*>* uses) const {
  uses->clear();
  const bool is_direct = carried.stand_in == nullptr;
  const Node& node = is_direct ? *take_ : *carried.stand_in;
  const int output = is_direct ? carried.take_output : carried.stand_in_output;
  for (const Edge* edge : node.out_edges()) {
    if (edge->src_output() != output) continue;
    if (is_direct && IsStandIn(*edge->dst())) continue;
    const std::string& device = edge->dst()->assigned_device_name();
    if (!IsAccelerator(device) || !DeviceNameUtils::IsSameAddressSpace(
                                      device, take_->assigned_device_name())) {
      continue;
    }
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(
        MemoryOn(device, graph_, *edge->dst(), &inputs, &outputs));
    if (inputs[edge->dst_input()] == DEVICE_MEMORY) uses->push_back(edge);
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
