// SPDX-License-Identifier: Apache-2.0

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

class EndReadsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  // Only sets a flag and wakes a producer.
  bool IsExpensive() override { return false; }

  void Compute(OpKernelContext* ctx) override {
    const auto run = StagedRun::Find(ctx->cancellation_manager());
    if (run != nullptr) run->EndReads();
  }
};

REGISTER_KERNEL_BUILDER(Name(kEndReadsOp).Device(DEVICE_CPU), EndReadsOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
