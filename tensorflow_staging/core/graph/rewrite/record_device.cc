// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/record_device.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/rewrite/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// Sets `*on_host` to the tensors of the record of `put` that are in host memory
// once they are in the buffer.
Status FindOnHost(const Graph& graph, const Node& put,
                  std::vector<int>* on_host) {
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(
      MemoryOn(put.assigned_device_name(), graph, put, &inputs, &outputs));
  std::vector<int> copied;
  TryGetNodeAttr(put.attrs(), kCopiedInputsAttr, &copied);
  for (int i = 0; i < put.num_inputs(); ++i) {
    if (inputs[i] == HOST_MEMORY && !absl::c_linear_search(copied, i)) {
      on_host->push_back(i);
    }
  }
  return OkStatus();
}

}  // namespace

Status NameDeviceOfRecords(Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    if (stage.checkpoints.empty() || stage.puts.empty()) continue;
    // All Puts are on one device, or the kernels refuse the stage.
    const Node& put = *stage.puts.front();
    if (!IsAccelerator(put.assigned_device_name())) continue;
    std::vector<int> on_host;
    TF_RETURN_IF_ERROR(FindOnHost(*graph, put, &on_host));
    const bool hands_over = put.attrs().Find(kHandsOverAttr) != nullptr;
    for (Node* node : stage.checkpoints) {
      node->AddAttr(kRecordsDeviceAttr, put.assigned_device_name());
      node->AddAttr(kHostTensorsAttr, on_host);
      if (hands_over) node->AddAttr(kHandsOverAttr, true);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
