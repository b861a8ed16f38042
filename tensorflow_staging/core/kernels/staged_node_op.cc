// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

class StagedNodeOp : public OpKernel {
 public:
  explicit StagedNodeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("indices", &indices_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("stage", &stage_));
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<bool> carried(ctx->num_outputs(), false);
    for (size_t i = 0; i < indices_.size(); ++i) {
      carried[indices_[i]] = true;
      ctx->set_output(indices_[i], ctx->input(i));
    }
    for (int i = 0; i < ctx->num_outputs(); ++i) {
      OP_REQUIRES(ctx, carried[i] || !ctx->output_required(i), NotCarried(i));
    }
  }

  bool IsExpensive() override { return false; }

 private:
  Status NotCarried(int index) const {
    return errors::FailedPrecondition(
        "Tensor '", name(), ":", index,
        "' is computed ahead of the step, in "
        "stage '",
        stage_,
        "', and is not carried to it, since nothing in the "
        "step uses it. To fetch it, call tf.train.mark_target_node([x]) with "
        "it, "
        "or with tf.identity of it, before the session is created.");
  }

  std::vector<int> indices_;
  std::string stage_;
};

REGISTER_KERNEL_BUILDER(Name("StagedNode").Device(DEVICE_CPU), StagedNodeOp);

// On an accelerator only where a graph says so, with the attributes by which
// single inputs and outputs stay on the host (graph/stage_delivery.h).
REGISTER_KERNEL_BUILDER(Name("StagedNode").Device(DEVICE_GPU), StagedNodeOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
