// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/owned_tensor.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kSize = 4;

// The memory of an array that the test goes on writing to.
class ForeignBuffer : public ::tensorflow::TensorBuffer {
 public:
  explicit ForeignBuffer(int64_t* array) : ::tensorflow::TensorBuffer(array) {}

  size_t size() const override { return kSize * sizeof(int64_t); }
  ::tensorflow::TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(AllocationDescription*) const override {}
  bool OwnsMemory() const override { return false; }
};

class OwnedTensorTest : public ::testing::Test {
 protected:
  // Returns a tensor that shares its memory with `array_`.
  Tensor Foreign() {
    auto* buffer = new ForeignBuffer(array_);
    Tensor tensor(DT_INT64, TensorShape({kSize}), buffer);
    buffer->Unref();
    return tensor;
  }

  alignas(64) int64_t array_[kSize] = {10, 11, 12, 13};
};

TEST_F(OwnedTensorTest, ForeignMemoryIsCopied) {
  const Tensor owned = OwnedTensor(Foreign());
  array_[0] = 99;
  EXPECT_EQ(owned.shape(), TensorShape({kSize}));
  EXPECT_EQ(owned.vec<int64_t>()(0), 10);
  EXPECT_EQ(owned.vec<int64_t>()(kSize - 1), 13);
}

TEST_F(OwnedTensorTest, ASliceOfForeignMemoryIsCopied) {
  const Tensor owned = OwnedTensor(Foreign().Slice(1, 3));
  array_[1] = 99;
  EXPECT_EQ(owned.shape(), TensorShape({2}));
  EXPECT_EQ(owned.vec<int64_t>()(0), 11);
}

TEST_F(OwnedTensorTest, MemoryOfTensorFlowIsNotCopied) {
  const Tensor tensor(DT_INT64, TensorShape({kSize}));
  EXPECT_EQ(OwnedTensor(tensor).data(), tensor.data());
  const Tensor slice = tensor.Slice(1, 3);
  EXPECT_EQ(OwnedTensor(slice).data(), slice.data());
}

TEST_F(OwnedTensorTest, ATensorWithoutElementsStays) {
  const Tensor empty(DT_INT64, TensorShape({0, kSize}));
  EXPECT_EQ(OwnedTensor(empty).shape(), empty.shape());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
