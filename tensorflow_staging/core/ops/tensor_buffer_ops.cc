// SPDX-License-Identifier: Apache-2.0
//
// The ops of a stage's buffer (framework/tensor_buffer.h). The ops of one stage
// share it by carrying the same container and shared_name, on one device.

#include <string>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"

namespace tensorflow {
namespace staging {
namespace {

using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

Status TakeShape(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr("shapes", &shapes));
  if (shapes.empty()) return shape_inference::UnknownShape(c);
  if (static_cast<int>(shapes.size()) != c->num_outputs()) {
    return errors::InvalidArgument(
        "shapes has ", shapes.size(), " entries and dtypes has ",
        c->num_outputs(), "; give one shape for each dtype, or none at all.");
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    ShapeHandle shape;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    c->set_output(i, shape);
  }
  return OkStatus();
}

Status CloseShape(InferenceContext* c) {
  ShapeHandle scalar;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &scalar));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &scalar));
  return OkStatus();
}

// The documentation of an op: its own, and that of the attributes below.
std::string BufferOpDoc(const char* doc) {
  return strings::StrCat(
      doc,
      R"doc(container: The resource container of the buffer; the device's default if empty.
shared_name: The name of the stage.
capacity: How many records the buffer holds. Counts in the op that runs first.
capacity_bytes: How many bytes the buffer holds; 0 sets no bound. A larger record
  is admitted when the buffer is empty. Counts in the op that runs first.
)doc");
}

// An op with the attributes by which the ops of a stage find, or make, its
// buffer.
#define REGISTER_BUFFER_OP(name)        \
  REGISTER_OP(name)                     \
      .SetIsStateful()                  \
      .Attr("container: string = ''")   \
      .Attr("shared_name: string = ''") \
      .Attr("capacity: int >= 1 = 1")   \
      .Attr("capacity_bytes: int >= 0 = 0")

}  // namespace

REGISTER_BUFFER_OP("TensorBufferPut")
    .Input("values: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Attr("timeout_millis: int >= 0 = 300000")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Puts one record into a stage's buffer, waiting for room without blocking a thread.

Fails with CANCELLED when the buffer is cancelled or closed, or the step is
cancelled. A record whose wait times out is dropped, counted and logged, and the
op succeeds.

values: The record.
timeout_millis: How many milliseconds to wait for room; 0 waits without end.
)doc"));

REGISTER_BUFFER_OP("TensorBufferTake")
    .Output("values: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Attr("shapes: list(shape) = []")
    // Lets UNAVAILABLE, by which a monitored session knows a lost worker, pass
    // as it is: it would become INTERNAL otherwise.
    .SetIsDistributedCommunication()
    .SetShapeFn(TakeShape)
    .Doc(BufferOpDoc(R"doc(
Takes the oldest record of a stage's buffer, waiting for one without blocking a
thread.

A record that is there is always taken. Without one, fails with OUT_OF_RANGE when
the stage has reached the end of its data, with the cause's code and message when
the stage failed, with CANCELLED when the buffer or the step is cancelled, and
with FAILED_PRECONDITION when nothing begins to feed the stage within seconds.

values: The record.
shapes: The static shapes of the outputs, one for each dtype; unknown if empty.
)doc"));

REGISTER_BUFFER_OP("TensorBufferCancel")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Ends every waiting put, take and begin of a stage's buffer with CANCELLED, and
refuses further ones until TensorBufferResume. Keeps the records. To takes, a buffer
that is closed stays closed.

)doc"));

REGISTER_BUFFER_OP("TensorBufferResume")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Opens a stage's buffer, whether it is new, cancelled or closed. Keeps the records.

)doc"));

REGISTER_BUFFER_OP("TensorBufferClose")
    .Input("error_code: int32")
    .Input("error_message: string")
    .SetShapeFn(CloseShape)
    .Doc(BufferOpDoc(R"doc(
Says that no more records will come to a stage's buffer, other than those of the
runs that TensorBufferBegin has admitted already. What it holds can still be taken.
Does nothing to a buffer that is closed already, or if it is about the data before a
restart.

error_code: Scalar. 0 at the end of the data, otherwise the code of the error that
  ended the stage (tensorflow.error.Code).
error_message: Scalar. The message of that error.
)doc"));

REGISTER_BUFFER_OP("TensorBufferBegin")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Admits a run of the staged part of a stage that can be restarted.

Has to run before the sources of the staged part. Waits, without blocking a thread,
while the buffer is restarted, and from TensorBufferClose until a restart or
TensorBufferResume. The run is active until its step ends. Fails with CANCELLED when
the buffer or the step is cancelled.

)doc"));

REGISTER_BUFFER_OP("TensorBufferRestart")
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(BufferOpDoc(R"doc(
Starts a stage anew: throws away what it has staged, for a source that is about to
be initialised again.

Has to run before the initialiser of the source. Waits, without blocking a thread,
until no run that TensorBufferBegin admitted is active; fails with DEADLINE_EXCEEDED
if that takes too long, and with CANCELLED when the step is cancelled. When its step
ends, whatever the outcome, the buffer is open again, and the runs that wait begin.
A buffer that is new or cancelled is so again.

)doc"));

REGISTER_BUFFER_OP("TensorBufferSize")
    .Output("size: int64")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc(BufferOpDoc(R"doc(
Tells how many records a stage's buffer holds.

size: Scalar.
)doc"));

#undef REGISTER_BUFFER_OP

}  // namespace staging
}  // namespace tensorflow
