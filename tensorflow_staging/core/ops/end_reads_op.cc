// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

REGISTER_OP(kEndReadsOp)
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc(R"doc(
Says that a staged run reads and draws no more.

Its control inputs are all that reads iterators or draws random numbers. From
then on the next run of the stage may do so: several producers make the records
of one, in the same order. Does nothing in other runs.
)doc");

}  // namespace staging
}  // namespace tensorflow
