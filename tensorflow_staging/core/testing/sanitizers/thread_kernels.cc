// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer that a kernel runs after the kernels on the CPU which
// have ended before it in its step: those that yield its inputs, and those that
// were the last to read memory which it writes again. The executor, which is in
// TensorFlow's libraries and not instrumented, counts both with atomics.
// random_gpu_graphs_test fails without this file. Between two kernels of one
// step that have no order, no race is found.
//
// A test that contains this file defines the functions itself, so that the
// loader binds to them the calls of all libraries.

#include <sanitizer/tsan_interface.h>

#include <utility>

#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/testing/sanitizers/next_definition.h"

namespace tensorflow {

#define THREAD_POOL_DEVICE "_ZN10tensorflow16ThreadPoolDevice"
#define OP_KERNEL_CONTEXT "_ZN10tensorflow15OpKernelContext"

namespace staging {

#define CONSTRUCT OP_KERNEL_CONTEXT "C1EPNS0_6ParamsEi"

// The constructor, which the executor calls for each kernel of any device.
void Construct(OpKernelContext* context, OpKernelContext::Params* params,
               int outputs) __asm__(CONSTRUCT);

void Construct(OpKernelContext* context, OpKernelContext::Params* params,
               int outputs) {
  static auto* const next =
      NextDefinition<void(OpKernelContext*, OpKernelContext::Params*, int)>(
          CONSTRUCT);
  __tsan_acquire(params->step_container);
  next(context, params, outputs);
}

}  // namespace staging

void ThreadPoolDevice::Compute(OpKernel* op_kernel, OpKernelContext* context) {
  static auto* const next = staging::NextDefinition<void(
      ThreadPoolDevice*, OpKernel*, OpKernelContext*)>(
      THREAD_POOL_DEVICE "7ComputeEPNS_8OpKernelEPNS_15OpKernelContextE");
  ScopedStepContainer* const step = context->step_container();
  next(this, op_kernel, context);
  __tsan_release(step);
}

void ThreadPoolDevice::ComputeAsync(AsyncOpKernel* op_kernel,
                                    OpKernelContext* context,
                                    AsyncOpKernel::DoneCallback done) {
  static auto* const next = staging::NextDefinition<void(
      ThreadPoolDevice*, AsyncOpKernel*, OpKernelContext*,
      AsyncOpKernel::DoneCallback)>(THREAD_POOL_DEVICE
                                    "12ComputeAsyncEPNS_13AsyncOpKernelEPNS_"
                                    "15OpKernelContextESt8functionIFvvEE");
  ScopedStepContainer* const step = context->step_container();
  next(this, op_kernel, context, [step, done = std::move(done)] {
    __tsan_release(step);
    done();
  });
}

// A kernel may write to the memory of its input if nobody else refers to that
// any more: the last one to read it may have ended since this kernel began.
Status OpKernelContext::forward_input_or_allocate_output(
    gtl::ArraySlice<int> candidate_input_indices, int output_index,
    const TensorShape& output_shape, Tensor** output, int* forwarded_input) {
  static auto* const next =
      staging::NextDefinition<Status(OpKernelContext*, gtl::ArraySlice<int>,
                                     int, const TensorShape&, Tensor**, int*)>(
          OP_KERNEL_CONTEXT
          "32forward_input_or_allocate_output"
          "EN4absl12lts_202301254SpanIKiEEiRKNS_11TensorShapeEPPNS_6TensorEPi");
  const Status status = next(this, candidate_input_indices, output_index,
                             output_shape, output, forwarded_input);
  __tsan_acquire(step_container());
  return status;
}

}  // namespace tensorflow
