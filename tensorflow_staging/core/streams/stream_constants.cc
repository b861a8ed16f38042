// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_constants.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow_staging/core/streams/gpu_devices.h"

namespace tensorflow {
namespace staging {

Status CopyConstantsToStreams(int gpus, Graph* graph) {
  GpuDevices devices(gpus);
  std::vector<Node*> constants;
  for (Node* node : graph->op_nodes()) {
    if (node->IsConstant() && devices.Number(*node) >= 0) {
      constants.push_back(node);
    }
  }
  for (Node* constant : constants) {
    std::vector<const Edge*> other_streams;
    for (const Edge* edge : constant->out_edges()) {
      if (!edge->IsControlEdge() &&
          devices.AreStreamsOfOneGpu(devices.Number(*constant),
                                     devices.Number(*edge->dst()))) {
        other_streams.push_back(edge);
      }
    }
    std::map<int, Node*> copies;
    for (const Edge* edge : other_streams) {
      Node* const user = edge->dst();
      const int input = edge->dst_input();
      const int number = devices.Number(*user);
      Node*& copy = copies[number];
      if (copy == nullptr) {
        copy = graph->CopyNode(constant);
        copy->set_name(graph->NewName(
            absl::StrCat(constant->name(), "/stream_", number / gpus)));
        copy->set_assigned_device_name(user->assigned_device_name());
        for (const Edge* control : constant->in_edges()) {
          graph->AddControlEdge(control->src(), copy);
        }
      }
      TF_RETURN_IF_ERROR(graph->UpdateEdge(copy, 0, user, input));
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
