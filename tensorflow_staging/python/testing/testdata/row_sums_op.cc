// SPDX-License-Identifier: Apache-2.0
//
// A minimal custom op of a user: the sum of each row of a matrix.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

REGISTER_OP("RowSums")
    .Input("matrix: float")
    .Output("sums: float")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::shape_inference::ShapeHandle matrix;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &matrix));
      c->set_output(0, c->Vector(c->Dim(matrix, 0)));
      return tensorflow::OkStatus();
    });

class RowSumsOp : public OpKernel {
 public:
  explicit RowSumsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const auto matrix = context->input(0).matrix<float>();
    const auto rows = matrix.dimension(0), columns = matrix.dimension(1);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({rows}), &output));
    auto sums = output->vec<float>();
    for (int64_t row = 0; row < rows; ++row) {
      sums(row) = 0;
      for (int64_t column = 0; column < columns; ++column) {
        sums(row) += matrix(row, column);
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("RowSums").Device(tensorflow::DEVICE_CPU),
                        RowSumsOp);

}  // namespace
