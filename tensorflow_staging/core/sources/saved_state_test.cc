// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/saved_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow {
namespace staging {
namespace {

// Writes `state` and reads it again.
Status RoundTrip(const SavedState& state, SavedState* read) {
  data::VariantTensorDataWriter writer;
  TF_RETURN_IF_ERROR(Write(state, &writer));
  std::vector<const VariantTensorData*> entries;
  writer.GetData(&entries);
  data::VariantTensorDataReader reader(entries);
  EXPECT_TRUE(HasSavedState(reader));
  return Read(&reader, read);
}

TEST(SavedStateTest, IsReadAsItWasWritten) {
  SavedState state;
  state.initializer = "train/initializer";
  state.records["first"] = {
      {{"image:0", "label:0"}, {Tensor(1.5f), Tensor("cat")}},
      {{"image:0", "label:0"}, {Tensor(2.5f), Tensor("dog")}}};
  state.records["second"] = {{{"ids:0"}, {Tensor(int64_t{7})}}};
  state.elements = {{Tensor(int64_t{8}), Tensor(true)}, {}};
  SavedState read;
  ASSERT_EQ(RoundTrip(state, &read), OkStatus());
  EXPECT_EQ(read.initializer, "train/initializer");
  ASSERT_EQ(read.records.size(), 2);
  const std::vector<SavedRecord>& first = read.records["first"];
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[1].tensor_names,
            (std::vector<std::string>{"image:0", "label:0"}));
  EXPECT_EQ(first[0].tensors[0].scalar<float>()(), 1.5f);
  EXPECT_EQ(first[1].tensors[1].scalar<tstring>()(), "dog");
  ASSERT_EQ(read.records["second"].size(), 1);
  EXPECT_EQ(read.records["second"][0].tensors[0].scalar<int64_t>()(), 7);
  ASSERT_EQ(read.elements.size(), 2);
  ASSERT_EQ(read.elements[0].size(), 2);
  EXPECT_EQ(read.elements[0][0].scalar<int64_t>()(), 8);
  EXPECT_TRUE(read.elements[1].empty());
}

TEST(SavedStateTest, MayHaveNothingButTheInitializer) {
  SavedState read;
  ASSERT_EQ(RoundTrip(SavedState(), &read), OkStatus());
  EXPECT_EQ(read.initializer, "");
  EXPECT_TRUE(read.records.empty());
  EXPECT_TRUE(read.elements.empty());
}

TEST(SavedStateTest, APositionOfAnotherTensorFlowHasNone) {
  data::VariantTensorDataWriter writer;
  ASSERT_EQ(writer.WriteScalar("Iterator", "next", int64_t{3}), OkStatus());
  std::vector<const VariantTensorData*> entries;
  writer.GetData(&entries);
  data::VariantTensorDataReader reader(entries);
  EXPECT_FALSE(HasSavedState(reader));
}

// A variant that has no decoder.
struct Unregistered {
  std::string TypeName() const { return "StagingTestUnregistered"; }
  void Encode(VariantTensorData* data) const {}
  bool Decode(const VariantTensorData& data) { return true; }
};

TEST(SavedStateTest, ARecordThatNoCheckpointCanKeepIsNamed) {
  Tensor variant(DT_VARIANT, TensorShape({}));
  variant.scalar<Variant>()() = Unregistered();
  Tensor handle(DT_RESOURCE, TensorShape({}));
  handle.scalar<ResourceHandle>()() = ResourceHandle();
  for (const Tensor& tensor : {variant, handle}) {
    SavedState state;
    state.records["prefetch"] = {{{"image:0"}, {tensor}}};
    data::VariantTensorDataWriter writer;
    const Status status = Write(state, &writer);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "The records of stage 'prefetch' cannot be "
                                  "saved: the tensor 'image:0' "))
        << status;
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
