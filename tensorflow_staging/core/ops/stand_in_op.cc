// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

Status StagedNodeShape(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr(kShapesAttr, &shapes));
  std::vector<int> indices;
  TF_RETURN_IF_ERROR(c->GetAttr(kIndicesAttr, &indices));
  if (static_cast<int>(indices.size()) != c->num_inputs()) {
    return errors::InvalidArgument("indices has ", indices.size(),
                                   " entries and carried has ", c->num_inputs(),
                                   "; give one index for each carried value.");
  }
  TF_RETURN_IF_ERROR(shape_inference::UnknownShape(c));
  const int num_shapes =
      std::min(static_cast<int>(shapes.size()), c->num_outputs());
  for (int i = 0; i < num_shapes; ++i) {
    ShapeHandle shape;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    c->set_output(i, shape);
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= c->num_outputs()) {
      return errors::InvalidArgument("indices[", i, "] is ", indices[i],
                                     "; it must be from 0 to ",
                                     c->num_outputs() - 1, ".");
    }
    c->set_output(indices[i], c->input(i));
  }
  return OkStatus();
}

}  // namespace

REGISTER_OP("StagedNode")
    .Input("carried: Tcarried")
    .Output("outputs: dtypes")
    .Attr("Tcarried: list(type) >= 0")
    .Attr("dtypes: list(type) >= 1")
    .Attr("indices: list(int) >= 0")
    .Attr("shapes: list(shape) = []")
    .Attr("stage: string")
    .SetShapeFn(StagedNodeShape)
    .Doc(R"doc(
Stands in, on the step's side, for a node that SmartStage runs ahead of it.

The stand-in has the name of that node and passes on those of its outputs that
the record carries. Fetching any other output fails with FAILED_PRECONDITION;
the error message says how to have it carried.

carried: The carried values of the node's outputs, from the record.
indices: For each carried value, the index of its output.
shapes: The static shapes of the outputs; unknown if empty.
stage: The name of the stage that computes the node ahead of the step.
)doc");

}  // namespace staging
}  // namespace tensorflow
