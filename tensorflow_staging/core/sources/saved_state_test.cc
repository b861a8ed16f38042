// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/saved_state.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

std::shared_ptr<const Outcome> Element(std::vector<Tensor> element) {
  auto outcome = std::make_shared<Outcome>();
  outcome->element = std::move(element);
  return outcome;
}

TEST(SavedStateTest, IsReadAsItWasWritten) {
  auto end = std::make_shared<Outcome>();
  end->is_end = true;
  auto error = std::make_shared<Outcome>();
  error->status = errors::DataLoss("truncated at 42");
  SavedState state;
  state.initializer = "train/initializer";
  state.outcomes = {Element({Tensor(1.5f), Tensor("cat")}), end, error,
                    Element({}), Element({Tensor(int64_t{7}), Tensor(true)})};
  SavedState read;
  ASSERT_EQ(RoundTrip(state, &read), OkStatus());
  EXPECT_EQ(read.initializer, "train/initializer");
  const Outcomes& outcomes = read.outcomes;
  ASSERT_EQ(outcomes.size(), 5);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i]->status, state.outcomes[i]->status);
    EXPECT_EQ(outcomes[i]->is_end, state.outcomes[i]->is_end);
    ASSERT_EQ(outcomes[i]->element.size(), state.outcomes[i]->element.size());
  }
  EXPECT_EQ(outcomes[0]->element[0].scalar<float>()(), 1.5f);
  EXPECT_EQ(outcomes[0]->element[1].scalar<tstring>()(), "cat");
  EXPECT_EQ(outcomes[4]->element[0].scalar<int64_t>()(), 7);
  EXPECT_TRUE(outcomes[4]->element[1].scalar<bool>()());
}

TEST(SavedStateTest, MayHaveNothingButTheInitializer) {
  SavedState read;
  ASSERT_EQ(RoundTrip(SavedState(), &read), OkStatus());
  EXPECT_EQ(read.initializer, "");
  EXPECT_TRUE(read.outcomes.empty());
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

TEST(SavedStateTest, AnElementThatNoCheckpointCanKeepIsNamed) {
  Tensor variant(DT_VARIANT, TensorShape({}));
  variant.scalar<Variant>()() = Unregistered();
  Tensor handle(DT_RESOURCE, TensorShape({}));
  handle.scalar<ResourceHandle>()() = ResourceHandle();
  for (const Tensor& tensor : {variant, handle}) {
    SavedState state;
    state.outcomes = {Element({Tensor(1.5f), tensor})};
    data::VariantTensorDataWriter writer;
    const Status status = Write(state, &writer);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "An element that was read ahead cannot be "
                                  "saved: its component 1 "))
        << status;
  }
}

TEST(SavedStateTest, ACheckpointFromBeforeTheLedgerIsRefused) {
  data::VariantTensorDataWriter writer;
  ASSERT_EQ(writer.WriteScalar("staging", "initializer", tstring("init")),
            OkStatus());
  ASSERT_EQ(writer.WriteScalar("staging", "stages", int64_t{0}), OkStatus());
  std::vector<const VariantTensorData*> entries;
  writer.GetData(&entries);
  data::VariantTensorDataReader reader(entries);
  EXPECT_TRUE(HasSavedState(reader));
  SavedState state;
  const Status status = Read(&reader, &state);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "earlier version")) << status;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
