// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
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
    OP_REQUIRES_OK(ctx, CheckIndices(*ctx));
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
  // The shape function checks graphs, but an op that runs eagerly has none.
  Status CheckIndices(const OpKernelConstruction& ctx) const {
    if (static_cast<int>(indices_.size()) != ctx.num_inputs()) {
      return errors::InvalidArgument(
          "indices has ", indices_.size(), " entries and carried has ",
          ctx.num_inputs(), "; give one index for each carried value.");
    }
    for (size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i] < 0 || indices_[i] >= ctx.num_outputs()) {
        return errors::InvalidArgument("indices[", i, "] is ", indices_[i],
                                       "; it must be from 0 to ",
                                       ctx.num_outputs() - 1, ".");
      }
      if (std::count(indices_.begin(), indices_.end(), indices_[i]) > 1) {
        return errors::InvalidArgument("indices has ", indices_[i],
                                       " more than once; an output can carry "
                                       "one value.");
      }
      if (ctx.input_type(i) != ctx.output_type(indices_[i])) {
        return errors::InvalidArgument(
            "carried[", i, "] is ", DataTypeString(ctx.input_type(i)),
            ", but output ", indices_[i], " is ",
            DataTypeString(ctx.output_type(indices_[i])),
            "; both must have the same type.");
      }
    }
    return OkStatus();
  }

  std::vector<int> indices_;
  std::string stage_;
};

REGISTER_KERNEL_BUILDER(Name(kStagedNodeOp).Device(DEVICE_CPU), StagedNodeOp);

// Runs on an accelerator only where a graph requests it, with the attributes
// that keep single inputs and outputs on the host
// (graph/place/stage_delivery.h).
REGISTER_KERNEL_BUILDER(Name(kStagedNodeOp).Device(DEVICE_GPU), StagedNodeOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
