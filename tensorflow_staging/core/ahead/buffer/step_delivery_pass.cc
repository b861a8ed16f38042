// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/buffer/step_delivery_pass.h"

#include <set>
#include <string>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// Sets `*does` to whether a node uses an output of `take` anywhere but in the
// memory of `device`.
Status IsUsedElsewhere(const Graph& graph, const Node& take, int output,
                       const std::string& device, bool* does) {
  *does = false;
  for (const Edge* edge : take.out_edges()) {
    if (edge->src_output() != output) continue;
    const Node& user = *edge->dst();
    if (user.assigned_device_name() != device) {
      *does = true;
      continue;
    }
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(MemoryOn(device, graph, user, &inputs, &outputs));
    *does |= inputs[edge->dst_input()] == HOST_MEMORY;
  }
  return OkStatus();
}

Status Deliver(const Graph& graph, Node* take) {
  RecordUses uses(graph, take);
  TF_RETURN_IF_ERROR(uses.Find());
  if (uses.device().empty()) return OkStatus();
  std::set<int> delivered;
  for (const Carried& carried : uses.carried()) {
    bool elsewhere = false;
    TF_RETURN_IF_ERROR(IsUsedElsewhere(graph, *take, carried.take_output,
                                       uses.device(), &elsewhere));
    if (!elsewhere &&
        DataTypeCanUseMemcpy(take->output_type(carried.take_output))) {
      delivered.insert(carried.take_output);
    }
  }
  if (!delivered.empty()) uses.MoveTake(uses.device(), delivered);
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
