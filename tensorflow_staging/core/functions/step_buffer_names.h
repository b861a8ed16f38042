// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FUNCTIONS_STEP_BUFFER_NAMES_H_
#define TENSORFLOW_STAGING_CORE_FUNCTIONS_STEP_BUFFER_NAMES_H_

namespace tensorflow {
namespace staging {

// The ops around the buffer of a divided function. They find the buffer by its
// handle, which is an argument, so one function serves several buffers.
inline constexpr char kStepBufferOp[] = "StepBuffer";
inline constexpr char kStepPutOp[] = "StepBufferPut";
inline constexpr char kStepTakeOp[] = "StepBufferTake";

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FUNCTIONS_STEP_BUFFER_NAMES_H_
