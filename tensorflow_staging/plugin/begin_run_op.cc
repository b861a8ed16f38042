// SPDX-License-Identifier: Apache-2.0
//
// The first op of a staged run of a session: tells the others to which run they
// belong. In the fork, runtime-direct-session-staged-runs.patch does.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/plugin/begin_of_run.h"

namespace tensorflow {
namespace staging {
namespace {

REGISTER_OP(kBeginRunOp)
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(R"doc(
Begins a staged run, in the thread that calls the session.

All other ops of the run wait for it. Does nothing in other runs.
)doc");

class BeginRunOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  bool IsExpensive() override { return false; }

  void Compute(OpKernelContext* ctx) override {
    BeginStagedRun(ctx->cancellation_manager());
  }
};

REGISTER_KERNEL_BUILDER(Name(kBeginRunOp).Device(DEVICE_CPU), BeginRunOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
