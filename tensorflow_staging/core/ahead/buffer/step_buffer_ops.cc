// SPDX-License-Identifier: Apache-2.0
//
// The ops of the buffer of a divided function: those of ops/tensor_buffer_ops.cc
// with a handle instead of a name.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_staging/core/ops/take_shape.h"

namespace tensorflow {
namespace staging {
namespace {

REGISTER_OP("StepBuffer")
    .Output("buffer: resource")
    .SetIsStateful()
    .Attr("stage: string")
    .Attr("capacity: int >= -1 = 1")
    .Attr("capacity_bytes: int >= 0 = 0")
    .Attr("device_capacity_bytes: int >= 0 = 0")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc(R"doc(
Makes a buffer for the records of a divided function.

buffer: Scalar. The handle of the buffer, which lives as long as its handles.
stage: The name of the stage, for errors and statistics.
capacity: How many records the buffer holds: at least 1, or -1
  (tf.data.AUTOTUNE) to let the buffer choose.
capacity_bytes: How many bytes the buffer holds in host memory; 0 sets no bound,
  or 512 MiB if the buffer chooses its capacity. An empty buffer admits even a
  larger record.
device_capacity_bytes: The same for the memory of each device.
)doc");

REGISTER_OP("StepBufferPut")
    .Input("buffer: resource")
    .Input("values: dtypes")
    .SetIsStateful()
    .Attr("dtypes: list(type) >= 0")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(R"doc(
Puts one record into a buffer. As TensorBufferPut without a timeout.

buffer: The handle of the buffer.
values: The record.
)doc");

REGISTER_OP("StepBufferTake")
    .Input("buffer: resource")
    .Output("values: dtypes")
    .SetIsStateful()
    .Attr("dtypes: list(type) >= 0")
    .Attr("shapes: list(shape) = []")
    .SetIsDistributedCommunication()
    .SetShapeFn(TakeShape)
    .Doc(R"doc(
Takes the oldest record of a buffer. As TensorBufferTake.

buffer: The handle of the buffer.
values: The record.
shapes: The static shapes of the outputs, one for each dtype; unknown if empty.
)doc");

}  // namespace
}  // namespace staging
}  // namespace tensorflow
