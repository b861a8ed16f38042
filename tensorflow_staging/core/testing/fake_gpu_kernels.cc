// SPDX-License-Identifier: Apache-2.0
//
// Ops for graphs that run on fake GPUs. All inputs and outputs are in device
// memory there, also 32-bit integers, except where this says otherwise.
//
//   StagingTestLinear(x...) = scale * (x[0] + x[1] + ...) + offset, for tensors
//     of one shape. Writes over x[0] where nothing else uses its memory. On
//     CPUs and GPUs.
//   StagingTestUpload(x) = x, where x is on the host. Its kernel receives the
//     value as a launch parameter, so there is no copy. On GPUs.

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

REGISTER_OP("StagingTestLinear")
    .Input("x: N * T")
    .Output("y: T")
    .Attr("N: int >= 1")
    .Attr("T: {float, int32, int64}")
    .Attr("scale: int = 1")
    .Attr("offset: int = 0")
    .SetShapeFn(shape_inference::UnchangedShape);

REGISTER_OP("StagingTestUpload")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {float, int32, int64}")
    .SetShapeFn(shape_inference::UnchangedShape);

template <typename T, bool on_gpu>
class LinearOp : public OpKernel {
 public:
  explicit LinearOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("scale", &scale_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("offset", &offset_));
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<const T*> inputs;
    for (int i = 0; i < ctx->num_inputs(); ++i) {
      OP_REQUIRES(ctx, ctx->input(i).shape() == ctx->input(0).shape(),
                  errors::InvalidArgument("Input ", i, " has another shape."));
      inputs.push_back(ctx->input(i).flat<T>().data());
    }
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->forward_input_or_allocate_output(
                            {0}, 0, ctx->input(0).shape(), &y));
    auto kernel = [inputs, output = y->flat<T>().data(),
                   size = y->NumElements(), scale = scale_, offset = offset_] {
      for (int64_t i = 0; i < size; ++i) {
        Sum sum = 0;
        for (const T* input : inputs) sum += Load(input[i]);
        output[i] = Load(static_cast<T>(static_cast<Sum>(scale) * sum +
                                        static_cast<Sum>(offset)));
      }
    };
    if constexpr (on_gpu) {
      LaunchOnFakeGpu(ctx, std::move(kernel));
    } else {
      kernel();
    }
  }

 private:
  // Integers wrap around.
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

  static T Load(T value) {
    if constexpr (on_gpu) return AcrossBorder(value);
    return value;
  }

  int64_t scale_;
  int64_t offset_;
};

template <typename T>
class UploadOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const auto x = ctx->input(0).flat<T>();
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &y));
    LaunchOnFakeGpu(ctx,
                    [values = std::vector<T>(x.data(), x.data() + x.size()),
                     output = y->flat<T>().data()] {
                      for (size_t i = 0; i < values.size(); ++i) {
                        output[i] = AcrossBorder(values[i]);
                      }
                    });
  }
};

#define REGISTER(T)                                                        \
  REGISTER_KERNEL_BUILDER(                                                 \
      Name("StagingTestLinear").Device(DEVICE_CPU).TypeConstraint<T>("T"), \
      LinearOp<T, /*on_gpu=*/false>);                                      \
  REGISTER_KERNEL_BUILDER(                                                 \
      Name("StagingTestLinear").Device(DEVICE_GPU).TypeConstraint<T>("T"), \
      LinearOp<T, /*on_gpu=*/true>);                                       \
  REGISTER_KERNEL_BUILDER(Name("StagingTestUpload")                        \
                              .Device(DEVICE_GPU)                          \
                              .TypeConstraint<T>("T")                      \
                              .HostMemory("x"),                            \
                          UploadOp<T>);
REGISTER(float)
REGISTER(int32)
REGISTER(int64_t)
#undef REGISTER

}  // namespace
}  // namespace staging
}  // namespace tensorflow
