// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

REGISTER_OP(kShareOp)
    .Input("shares: variant")
    .Output("values: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Attr("indices: list(int) >= 1")
    .SetShapeFn(shape_inference::UnknownShape)
    .Doc(R"doc(
Takes an accelerator's share of a record out of those that a Take has taken.

Fails with INVALID_ARGUMENT if `shares` has no such share for the accelerator on
which the op runs.

shares: Scalar. The shares of all accelerators.
values: Tensors of the record, in the memory of the accelerator.
indices: Their indices in the record, one for each dtype.
)doc");

}  // namespace staging
}  // namespace tensorflow
