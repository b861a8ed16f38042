// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_KERNELS_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_KERNELS_H_

#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/kernels/buffer_reference.h"

namespace tensorflow {
namespace staging {

// A kernel that calls its stage's buffer, and waits without blocking a thread.
//
// A profiler's trace shows each call from its start to its end, and so how long
// it waited: an event with the op's name, the stage, and the number of records
// in the buffer when the call came. The executor's own event of an asynchronous
// op ends when the op begins to wait. TraceMe shows an event on the thread that
// ends it: that of the put which a take has waited for, for example.
class AsyncBufferKernel : public AsyncOpKernel {
 public:
  explicit AsyncBufferKernel(OpKernelConstruction* ctx)
      : AsyncOpKernel(ctx), buffer_(ctx) {}

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) final {
    TensorBuffer* buffer = nullptr;
    OP_REQUIRES_OK_ASYNC(ctx, buffer_.Get(ctx, *this, &buffer), done);
    // Without a profiler, this test of an atomic is all that a trace costs.
    if (TF_PREDICT_FALSE(tsl::profiler::TraceMe::Active(kTraceLevel))) {
      done = Traced(*buffer, std::move(done));
    }
    RunAsync(ctx, buffer, std::move(done));
  }

  // Only moves references, which is not worth a switch to another thread.
  bool IsExpensive() override { return false; }

 private:
  // What profilers record unless the user asks for less.
  static constexpr int kTraceLevel = tsl::profiler::TraceMeLevel::kInfo;

  virtual void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                        DoneCallback done) = 0;

  // Begins the event of a call. Returns a `done` that ends it.
  DoneCallback Traced(const TensorBuffer& buffer, DoneCallback done) const {
    const int64_t event = tsl::profiler::TraceMe::ActivityStart(
        [this, &buffer] {
          return tsl::profiler::TraceMeEncode(
              type_string(),
              {{"stage", buffer.name()}, {"records", buffer.Size()}});
        },
        kTraceLevel);
    return [event, done = std::move(done)] {
      tsl::profiler::TraceMe::ActivityEnd(event);
      done();
    };
  }

  BufferReference buffer_;
};

// A kernel that calls its stage's buffer by `run`, and does not wait.
template <void (*run)(OpKernelContext*, TensorBuffer*)>
class BufferKernel : public OpKernel {
 public:
  explicit BufferKernel(OpKernelConstruction* ctx)
      : OpKernel(ctx), buffer_(ctx) {}

  void Compute(OpKernelContext* ctx) final {
    TensorBuffer* buffer = nullptr;
    OP_REQUIRES_OK(ctx, buffer_.Get(ctx, *this, &buffer));
    run(ctx, buffer);
  }

  bool IsExpensive() final { return false; }

 private:
  BufferReference buffer_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_KERNELS_H_
