// SPDX-License-Identifier: Apache-2.0
//
// The ops of a stage's buffer (buffer/tensor_buffer.h). The ops of one stage
// share the buffer because they have the same container and shared_name, and
// run on the same device.

#include <string>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/ops/take_shape.h"

namespace tensorflow {
namespace staging {
namespace {

using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

Status CloseShape(InferenceContext* c) {
  ShapeHandle scalar;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &scalar));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &scalar));
  return OkStatus();
}

// Appends the documentation of the attributes that all these ops have.
std::string BufferOpDoc(const char* doc) {
  return strings::StrCat(
      doc,
      R"doc(container: The resource container of the buffer; if empty, the
  device's default container.
shared_name: The name of the stage; must not be empty.
capacity: How many records the buffer holds: at least 1, or -1
  (tf.data.AUTOTUNE) to let the buffer choose. Only the value of the op that
  runs first counts.
capacity_bytes: How many bytes the buffer holds in host memory; 0 sets no bound,
  or 512 MiB if the buffer chooses its capacity. An empty buffer admits even a
  larger record.
  Only the value of the op that runs first counts.
device_capacity_bytes: The same for the memory of each device.
)doc");
}

// Registers an op with the attributes that the ops of a stage use to find or
// create its buffer.
#define REGISTER_BUFFER_OP(name)            \
  REGISTER_OP(name)                         \
      .SetIsStateful()                      \
      .Attr("container: string = ''")       \
      .Attr("shared_name: string = ''")     \
      .Attr("capacity: int >= -1 = 1")      \
      .Attr("capacity_bytes: int >= 0 = 0") \
      .Attr("device_capacity_bytes: int >= 0 = 0")

}  // namespace

REGISTER_BUFFER_OP("TensorBufferPut")
    .Input("values: dtypes")
    .Attr("dtypes: list(type) >= 0")
    .Attr(strings::StrCat("timeout_millis: int >= 0 = ", kDefaultTimeoutMillis))
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Puts one record into a stage's buffer.

Waits for room, without blocking a thread. Fails with CANCELLED if the buffer
is cancelled or closed, or if the session's run is cancelled. If the wait times
out, the record is dropped, counted and logged, and the op succeeds. If an
element that the record was made from has gone back to its iterator meanwhile,
or the iterator has got another dataset or position, the record is discarded and
counted, and the op succeeds.

values: The record, which may have no tensor.
timeout_millis: How many milliseconds to wait for room; 0 waits without a limit.
)doc"));

REGISTER_BUFFER_OP("TensorBufferTake")
    .Output("values: dtypes")
    .Attr("dtypes: list(type) >= 0")
    .Attr("shapes: list(shape) = []")
    // Preserves UNAVAILABLE, by which a monitored session recognises a lost
    // worker. Otherwise it would become INTERNAL.
    .SetIsDistributedCommunication()
    .SetShapeFn(TakeShape)
    .Doc(BufferOpDoc(R"doc(
Takes the oldest record of a stage's buffer.

Waits for a record, without blocking a thread. If the buffer holds a record, the
op takes it, whatever the state of the buffer. Without a record, the op fails
with OUT_OF_RANGE if the stage has reached the end of its data, with the code
and the message of the cause if an error ended the stage, with CANCELLED if the
buffer or the session's run is cancelled, and with FAILED_PRECONDITION if
nothing begins to feed the stage within seconds.

A step that takes a record, or gets the end or the error, uses what was read for
it, and the stage goes on, if it runs. A run of another stage that takes a record
holds the elements of that until its own record is taken.

Fails with INVALID_ARGUMENT if the dtypes of the record are not `dtypes`.

values: The record, which may have no tensor.
shapes: The static shapes of the outputs, one for each dtype; unknown if empty.
)doc"));

REGISTER_BUFFER_OP("TensorBufferCancel")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Cancels a stage's buffer.

Every waiting TensorBufferPut and TensorBufferTake of the buffer fails with
CANCELLED, except the puts of runners. Until TensorBufferResume, so does every
later put, and every take that finds no record. The buffer keeps its records.
For takes, a closed buffer stays closed. What runs have read that put no record
goes back to its iterators.

)doc"));

REGISTER_BUFFER_OP("TensorBufferResume")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Opens a stage's buffer, whether it is new, cancelled or closed.

The buffer keeps its records. What had ended the stage is tried again, if no
take has got it and it came from an iterator.

)doc"));

REGISTER_BUFFER_OP("TensorBufferClose")
    .Input("error_code: int32")
    .Input("error_message: string")
    .SetShapeFn(CloseShape)
    .Doc(BufferOpDoc(R"doc(
Declares that no more records will come to a stage's buffer.

Only the runs of runners that have already begun may still put their records.
The records in the buffer can still be taken. The op has no effect if the buffer
is already closed, or if all that the failed runs had read has gone back to its
iterators, or belongs to data that these no longer have.

Fails with INVALID_ARGUMENT if an input is not a scalar.

error_code: Scalar. 0 at the end of the data, otherwise the code of the error
  that ended the stage (tensorflow.error.Code).
error_message: Scalar. The message of that error.
)doc"));

REGISTER_BUFFER_OP("TensorBufferDiscard")
    .Output("discarded: int64")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc(BufferOpDoc(R"doc(
Lets the records of a stage, and those that its runners are making, be made
again.

What they were made from goes back to its iterators. Records that were made from
no iterator are dropped.

discarded: Scalar. The number of records that waited.
)doc"));

REGISTER_BUFFER_OP("TensorBufferSize")
    .Output("size: int64")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc(BufferOpDoc(R"doc(
Returns the number of records that a stage's buffer holds.

size: Scalar. The number of records.
)doc"));

REGISTER_BUFFER_OP("TensorBufferStats")
    .Output("stats: string")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc(BufferOpDoc(R"doc(
Returns what a stage's buffer has counted and measured.

stats: Scalar. A serialized tensorflow.staging.BufferStats message.
)doc"));

#undef REGISTER_BUFFER_OP

}  // namespace staging
}  // namespace tensorflow
