// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
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

// Strings and resources stay on the host, where the node that is stood for had
// them.
#define TF_STAGING_DEVICE_TYPES                                             \
  {                                                                         \
    DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT64, DT_UINT8, DT_INT8, \
        DT_INT16, DT_UINT16, DT_UINT32, DT_UINT64, DT_BOOL, DT_COMPLEX64,   \
        DT_COMPLEX128                                                       \
  }
REGISTER_KERNEL_BUILDER(Name("StagedNode")
                            .Device(DEVICE_GPU)
                            .TypeConstraint("dtypes", TF_STAGING_DEVICE_TYPES),
                        StagedNodeOp);
#undef TF_STAGING_DEVICE_TYPES

}  // namespace
}  // namespace staging
}  // namespace tensorflow
