// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/record_device.h"

#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/host_tensors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/rewrite/record_uses.h"

namespace tensorflow {
namespace staging {

Status NameDeviceOfRecords(Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    if (stage.checkpoints.empty() || stage.puts.empty()) continue;
    // All Puts are on one device, or the kernels refuse the stage.
    const Node& put = *stage.puts.front();
    if (!IsAccelerator(put.assigned_device_name())) continue;
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(
        MemoryOn(put.assigned_device_name(), *graph, put, &inputs, &outputs));
    const std::vector<int> on_host = HostTensors(put.attrs(), inputs);
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
