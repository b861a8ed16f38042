// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/not_carried.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

class StagedNodeOp : public OpKernel {
 public:
  explicit StagedNodeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kIndicesAttr, &indices_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kStageNameAttr, &stage_));
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<bool> carried(ctx->num_outputs(), false);
    for (size_t i = 0; i < indices_.size(); ++i) {
      carried[indices_[i]] = true;
      ctx->set_output(indices_[i], ctx->input(i));
    }
    for (int i = 0; i < ctx->num_outputs(); ++i) {
      OP_REQUIRES(ctx, carried[i] || !ctx->output_required(i),
                  NotCarriedError(name(), i, stage_));
    }
  }

  bool IsExpensive() override { return false; }

 private:
  std::vector<int> indices_;
  std::string stage_;
};

REGISTER_KERNEL_BUILDER(Name(kStagedNodeOp).Device(DEVICE_CPU), StagedNodeOp);

// Runs on an accelerator only where a graph requests it, with the attributes
// that keep single inputs and outputs on the host
// (graph/rewrite/stage_delivery.h).
REGISTER_KERNEL_BUILDER(Name(kStagedNodeOp).Device(DEVICE_GPU), StagedNodeOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
