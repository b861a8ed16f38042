// SPDX-License-Identifier: Apache-2.0

#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/records/record_shares.h"

namespace tensorflow {
namespace staging {
namespace {

class RecordShareOp : public OpKernel {
 public:
  explicit RecordShareOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kIndicesAttr, &indices_));
    OP_REQUIRES(ctx, static_cast<int>(indices_.size()) == ctx->num_outputs(),
                errors::InvalidArgument(
                    "indices has ", indices_.size(), " entries and dtypes has ",
                    ctx->num_outputs(), "; give one index for each dtype."));
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<Tensor> tensors;
    OP_REQUIRES_OK(
        ctx, TakeShare(ctx->input(0), indices_, *ctx->device(), &tensors));
    for (int i = 0; i < ctx->num_outputs(); ++i) {
      OP_REQUIRES(ctx, tensors[i].dtype() == output_type(i),
                  errors::InvalidArgument(
                      "Tensor ", indices_[i], " of the record is ",
                      DataTypeString(tensors[i].dtype()), " where '", name(),
                      "' expects ", DataTypeString(output_type(i)), "."));
      ctx->set_output(i, std::move(tensors[i]));
    }
  }

  // Only moves references, which is not worth a switch to another thread.
  bool IsExpensive() override { return false; }

 private:
  std::vector<int> indices_;
};

REGISTER_KERNEL_BUILDER(Name(kShareOp).Device(DEVICE_GPU).HostMemory("shares"),
                        RecordShareOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
