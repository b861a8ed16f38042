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

SavedState TwoStages() {
  SavedState state;
  state.initializer = "initializer";
  state.records["a"] = {{{"x:0", "y:1"}, {Tensor(int64_t{1}), Tensor("one")}},
                        {{"x:0", "y:1"}, {Tensor(int64_t{2}), Tensor("two")}}};
  state.records["b"] = {{{"z:0"}, {Tensor(0.5f)}}};
  state.elements = {{Tensor(int64_t{3})}};
  return state;
}

// Each tensor in turn is another, or is missing.
TEST(DamagedStateTest, ReadRefusesIt) {
  const Tensor others[] = {Tensor(int64_t{-1}), Tensor(int64_t{1} << 60),
                           Tensor(0.5f), Tensor(DT_STRING, TensorShape({2}))};
  const Entries good = Written(TwoStages());
  int refused = 0;
  for (size_t entry = 0; entry < good.size(); ++entry) {
    for (int tensor = 0; tensor < good[entry]->tensors_size(); ++tensor) {
      for (const Tensor& other : others) {
        Entries entries = Written(TwoStages());
        auto damaged = std::make_unique<VariantTensorData>();
        damaged->set_metadata(good[entry]->metadata_string());
        for (int i = 0; i < good[entry]->tensors_size(); ++i) {
          *damaged->add_tensors() =
              i == tensor ? other : good[entry]->tensors(i);
        }
        entries[entry] = std::move(damaged);
        SavedState state;
        // The tensors of records and elements themselves may be any.
        if (!Read(ReaderOf(entries).get(), &state).ok()) ++refused;
      }
    }
    Entries missing = Written(TwoStages());
    missing.erase(missing.begin() + entry);
    SavedState state;
    EXPECT_FALSE(Read(ReaderOf(missing).get(), &state).ok()) << entry;
  }
  // An initialiser, 2 stages, 2 names of stages, 2 counts, and the elements; of
  // each record and element its size, and 5 names of tensors.
  EXPECT_EQ(refused, 4 * (1 + 1 + 2 + 2 + 1 + 4 + 5));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
