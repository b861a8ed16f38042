// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_OPS_TAKE_SHAPE_H_
#define TENSORFLOW_STAGING_CORE_OPS_TAKE_SHAPE_H_

#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// The shape function of an op that takes a record: the shapes of its outputs are
// those of its attribute "shapes", or unknown if that is empty.
Status TakeShape(shape_inference::InferenceContext* c);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_OPS_TAKE_SHAPE_H_
