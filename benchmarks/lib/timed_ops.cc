// SPDX-License-Identifier: Apache-2.0
//
// Ops that pass a tensor on after some time: one waits, as for storage or for a
// GPU, without a thread; the other one computes. Nothing holds Python's lock, and
// several of them go on at the same time.

#include <time.h>

#include <cstdint>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace {

REGISTER_OP("PassOnAfterWaiting")
    .Input("value: T")
    .Output("same: T")
    .Attr("T: type")
    .Attr("micros: int >= 0")
    .SetShapeFn(shape_inference::UnchangedShape);

REGISTER_OP("PassOnAfterComputing")
    .Input("value: T")
    .Output("same: T")
    .Attr("T: type")
    .Attr("micros: int >= 0")
    .SetShapeFn(shape_inference::UnchangedShape);

class Waiting : public AsyncOpKernel {
 public:
  explicit Waiting(OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("micros", &micros_));
  }

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    ctx->set_output(0, ctx->input(0));
    Env::Default()->SchedClosureAfter(micros_, std::move(done));
  }

 private:
  int64_t micros_;
};

class Computing : public OpKernel {
 public:
  explicit Computing(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("micros", &micros_));
  }

  bool IsExpensive() override { return true; }

  void Compute(OpKernelContext* ctx) override {
    const int64_t end = CpuNanos() + micros_ * 1000;
    while (CpuNanos() < end) continue;
    ctx->set_output(0, ctx->input(0));
  }

 private:
  // Of this thread.
  static int64_t CpuNanos() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
  }

  int64_t micros_;
};

REGISTER_KERNEL_BUILDER(Name("PassOnAfterWaiting").Device(DEVICE_CPU), Waiting);
REGISTER_KERNEL_BUILDER(Name("PassOnAfterComputing").Device(DEVICE_CPU),
                        Computing);

}  // namespace
}  // namespace tensorflow
