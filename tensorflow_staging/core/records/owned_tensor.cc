// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/owned_tensor.h"

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/tensor_util.h"

namespace tensorflow {
namespace staging {

Tensor OwnedTensor(Tensor tensor) {
  // Null for a tensor without elements.
  const ::tensorflow::TensorBuffer* buffer = DMAHelper::buffer(&tensor);
  // A slice owns its memory if the whole does.
  if (buffer == nullptr || const_cast<::tensorflow::TensorBuffer*>(buffer)
                               ->root_buffer()
                               ->OwnsMemory()) {
    return tensor;
  }
  return tensor::DeepCopy(tensor);
}

}  // namespace staging
}  // namespace tensorflow
