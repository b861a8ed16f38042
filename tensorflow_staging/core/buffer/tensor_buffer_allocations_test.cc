// SPDX-License-Identifier: Apache-2.0
//
// Tests that it takes no memory to count the bytes of a record.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace {

// Of this thread.
thread_local int64_t allocations = 0;

}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tensorflow {
namespace staging {
namespace {

// How often a Put of a record with two tensors allocates memory.
int64_t AllocationsOfPut(const TensorBuffer::Options& options) {
  const core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  buffer->KeepRecordsOn("GPU:0, with tensors 0 on the host");
  Record record = {Tensor(int64_t{1}), Tensor(int64_t{2})};
  const int64_t before = allocations;
  buffer->PutAsync(std::move(record), kNoTimeout, nullptr,
                   [](const Status& status) { TF_CHECK_OK(status); });
  return allocations - before;
}

TEST(TensorBufferAllocationsTest, BytesAreCountedWithoutMemory) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.capacity = 4;
  const int64_t unbounded = AllocationsOfPut(options);
  options.capacity_bytes = 1000;
  EXPECT_EQ(AllocationsOfPut(options), unbounded);
  options.capacity = kAutotune;
  EXPECT_EQ(AllocationsOfPut(options), unbounded);
  options.place_of = [](const Tensor& tensor,
                        absl::FunctionRef<std::string()> computed_on) {
    return tensor.scalar<int64_t>()() == 1 ? std::string() : computed_on();
  };
  EXPECT_EQ(AllocationsOfPut(options), unbounded) << "with bytes of a device";
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
