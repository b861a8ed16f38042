// SPDX-License-Identifier: Apache-2.0
//
// The op that ends a step for which no worker of a strategy has data. Where each
// worker reads ahead for itself, only the rest can ask the others.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

REGISTER_OP("StepNeedsData")
    .Input("any_has_data: bool")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(R"doc(
Fails as the end of an iterator does, unless some worker has data for the step.

any_has_data: Scalar. Whether some worker has data.
)doc");

class StepNeedsDataOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& any_has_data = ctx->input(0);
    OP_REQUIRES(
        ctx, any_has_data.NumElements() == 1,
        errors::InvalidArgument("any_has_data must be a scalar, got shape ",
                                any_has_data.shape().DebugString(), "."));
    OP_REQUIRES(ctx, any_has_data.flat<bool>()(0),
                errors::OutOfRange("End of sequence"));
  }
};

REGISTER_KERNEL_BUILDER(Name("StepNeedsData").Device(DEVICE_CPU),
                        StepNeedsDataOp);
REGISTER_KERNEL_BUILDER(
    Name("StepNeedsData").Device(DEVICE_GPU).HostMemory("any_has_data"),
    StepNeedsDataOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
