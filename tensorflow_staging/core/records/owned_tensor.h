// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_OWNED_TENSOR_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_OWNED_TENSOR_H_

#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace staging {

// Returns a tensor whose memory nobody but TensorFlow writes to: `tensor`
// itself, or a copy of it if its memory belongs to somebody else.
//
// TensorFlow does not copy an array that Python code returns (tf.py_func,
// tf.numpy_function, a generator) if its address is aligned. Such code may fill
// the same array for each record. A step is over before the next call, but a
// record waits in a buffer meanwhile.
//
// The tensor must be in host memory.
Tensor OwnedTensor(Tensor tensor);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_OWNED_TENSOR_H_
