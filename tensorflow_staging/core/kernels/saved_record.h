// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_SAVED_RECORD_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_SAVED_RECORD_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// A record as a checkpoint keeps it: an element of the variant tensor that
// holds the saved position of an iterator, behind the elements that
// SerializeIterator wrote. Its format must not change, since checkpoints
// outlive programs.
//
// TensorFlow without stages does not know the element's type, and a session
// whose stages differ does not find its stage, so a checkpoint is never
// restored without its records.
struct SavedRecord {
  // The name of the stage.
  std::string stage;
  // The names of the tensors in the stage's region, one for each tensor.
  std::vector<std::string> tensor_names;
  std::vector<Tensor> tensors;

  // What Variant requires.
  static constexpr char kTypeName[] = "tensorflow::staging::SavedRecord";
  std::string TypeName() const { return kTypeName; }
  void Encode(VariantTensorData* data) const;
  bool Decode(const VariantTensorData& data);
  std::string DebugString() const;
};

// Returns OK if a checkpoint can keep `tensor`. Otherwise returns
// INVALID_ARGUMENT with a reason that completes "the tensor ... ".
Status CheckCanBeSaved(const Tensor& tensor);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_SAVED_RECORD_H_
