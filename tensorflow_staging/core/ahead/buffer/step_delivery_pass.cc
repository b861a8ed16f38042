// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/buffer/step_delivery_pass.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// Sets `*is_used` to whether a node uses an output of `take` anywhere but in the
// memory of an accelerator of its task.
Status IsUsedOnHost(const RecordUses& uses, const Node& take,
                    const Carried& carried, bool* is_used) {
  std::vector<const Edge*> on_accelerators;
  TF_RETURN_IF_ERROR(uses.FindUses(carried, &on_accelerators));
  const auto all =
      absl::c_count_if(take.out_edges(), [&carried](const Edge* edge) {
        return edge->src_output() == carried.take_output;
      });
  *is_used = all > static_cast<int64_t>(on_accelerators.size());
  return OkStatus();
}

Status Deliver(const Graph& graph, Node* take) {
  RecordUses uses(graph, take);
  TF_RETURN_IF_ERROR(uses.Find());
  if (uses.device().empty()) return OkStatus();
  std::set<int> delivered;
  SharesByDevice shares;
  for (const Carried& carried : uses.carried()) {
    const int i = carried.take_output;
    if (!DataTypeCanUseMemcpy(take->output_type(i))) continue;
    std::set<std::string> devices;
    TF_RETURN_IF_ERROR(uses.FindDevices(carried, &devices));
    bool on_host = false;
    TF_RETURN_IF_ERROR(IsUsedOnHost(uses, *take, carried, &on_host));
    for (const std::string& device : devices) {
      if (device != uses.device()) {
        shares[device].insert(i);
      } else if (!on_host) {
        delivered.insert(i);
      }
    }
  }
  if (delivered.empty() && shares.empty()) return OkStatus();
  uses.MoveTake(uses.device(), delivered);
  WriteShares(shares, take);
  return OkStatus();
}

// Runs on each graph, those of functions included.
class StepDeliveryPass : public GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    return options.graph == nullptr ? OkStatus()
                                    : DeliverRecords(options.graph->get());
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_PLACEMENT, 6,
                      StepDeliveryPass);

}  // namespace

Status DeliverRecords(Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() == kStepTakeOp &&
        !IsAccelerator(node->assigned_device_name())) {
      TF_RETURN_IF_ERROR(Deliver(*graph, node));
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
