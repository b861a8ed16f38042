// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ops/take_shape.h"

#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

Status TakeShape(shape_inference::InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr("shapes", &shapes));
  if (shapes.empty()) return shape_inference::UnknownShape(c);
  if (static_cast<int>(shapes.size()) != c->num_outputs()) {
    return errors::InvalidArgument(
        "shapes has ", shapes.size(), " entries and dtypes has ",
        c->num_outputs(), "; give one shape for each dtype, or none at all.");
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    shape_inference::ShapeHandle shape;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    c->set_output(i, shape);
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
