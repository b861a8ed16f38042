// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer that a kernel on a CPU runs after the kernels of its
// step that have ended before: those that yield its inputs, and those that were
// the last to read memory which it writes again. The executor, which is in
// TensorFlow's libraries and not instrumented, counts both with atomics.
// random_gpu_graphs_test fails without this file. Between two kernels of one
// step that have no order, no race is found.
//
// A test that contains this file defines the functions of ThreadPoolDevice
// itself, so that the loader binds to them the calls of all libraries.

#include <sanitizer/tsan_interface.h>

#include <utility>

#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/testing/sanitizers/next_definition.h"

namespace tensorflow {

#define THREAD_POOL_DEVICE "_ZN10tensorflow16ThreadPoolDevice"

void ThreadPoolDevice::Compute(OpKernel* op_kernel, OpKernelContext* context) {
  static auto* const next = staging::NextDefinition<void(
      ThreadPoolDevice*, OpKernel*, OpKernelContext*)>(
      THREAD_POOL_DEVICE "7ComputeEPNS_8OpKernelEPNS_15OpKernelContextE");
  ScopedStepContainer* const step = context->step_container();
  __tsan_acquire(step);
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
  __tsan_acquire(step);
  next(this, op_kernel, context, [step, done = std::move(done)] {
    __tsan_release(step);
    done();
  });
}

}  // namespace tensorflow
