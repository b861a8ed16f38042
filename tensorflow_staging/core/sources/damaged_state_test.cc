// SPDX-License-Identifier: Apache-2.0
//
// A file is user input: tests that a damaged one is refused.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/saved_state.h"

namespace tensorflow {
namespace staging {
namespace {

using Entries = std::vector<std::unique_ptr<VariantTensorData>>;

Entries Written(const SavedState& state) {
  data::VariantTensorDataWriter writer;
  TF_CHECK_OK(Write(state, &writer));
  Entries entries;
  writer.ReleaseData(&entries);
  return entries;
}

std::unique_ptr<data::VariantTensorDataReader> ReaderOf(
    const Entries& entries) {
  std::vector<const VariantTensorData*> data;
  for (const auto& entry : entries) data.push_back(entry.get());
  return std::make_unique<data::VariantTensorDataReader>(data);
}

// An element of two components, an end, and an error.
SavedState ThreeOutcomes() {
  auto element = std::make_shared<Outcome>();
  element->element = {Tensor(int64_t{1}), Tensor("one")};
  auto end = std::make_shared<Outcome>();
  end->is_end = true;
  auto error = std::make_shared<Outcome>();
  error->status = errors::DataLoss("truncated");
  SavedState state;
  state.initializer = "initializer";
  state.outcomes = {element, end, error};
  return state;
}

// Each tensor in turn is another, or is missing.
TEST(DamagedStateTest, ReadRefusesIt) {
  const Tensor others[] = {Tensor(int64_t{-1}), Tensor(int64_t{1} << 60),
                           Tensor(0.5f), Tensor(DT_STRING, TensorShape({2}))};
  const Entries good = Written(ThreeOutcomes());
  int refused = 0;
  for (size_t entry = 0; entry < good.size(); ++entry) {
    for (int tensor = 0; tensor < good[entry]->tensors_size(); ++tensor) {
      for (const Tensor& other : others) {
        Entries entries = Written(ThreeOutcomes());
        auto damaged = std::make_unique<VariantTensorData>();
        damaged->set_metadata(good[entry]->metadata_string());
        for (int i = 0; i < good[entry]->tensors_size(); ++i) {
          *damaged->add_tensors() =
              i == tensor ? other : good[entry]->tensors(i);
        }
        entries[entry] = std::move(damaged);
        SavedState state;
        // The components of elements themselves may be any.
        if (!Read(ReaderOf(entries).get(), &state).ok()) ++refused;
      }
    }
    Entries missing = Written(ThreeOutcomes());
    missing.erase(missing.begin() + entry);
    SavedState state;
    EXPECT_FALSE(Read(ReaderOf(missing).get(), &state).ok()) << entry;
  }
  // An initialiser, the number of outcomes, and of each its kind; the size of the
  // element, and the code and the message of the error.
  EXPECT_EQ(refused, 4 * (1 + 1 + 3 + 1 + 2));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
