// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FUNCTIONS_STEP_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_FUNCTIONS_STEP_BUFFER_H_

#include <atomic>
#include <cstdint>

#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// The buffer of a divided function. It counts the errors that steps have taken,
// so that a step's own error can be told from one of the part ahead: only after
// the latter does the part ahead go on.
class StepBuffer : public TensorBuffer {
 public:
  using TensorBuffer::TensorBuffer;

  void NoteErrorTaken() { ++errors_taken_; }
  int64_t errors_taken() const { return errors_taken_; }

 private:
  std::atomic<int64_t> errors_taken_{0};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FUNCTIONS_STEP_BUFFER_H_
