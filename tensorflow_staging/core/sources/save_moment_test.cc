// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/save_moment.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

std::shared_ptr<ReadSet> ReadNext(TestIterator* iterator) {
  auto reads = std::make_shared<ReadSet>();
  EXPECT_GE(iterator->Read(reads), 0);
  return reads;
}

// A step on another thread uses a record between the saves of two iterators.
TEST(SaveMomentTest, WhatIsUsedAfterTheFirstSaveOfARunIsUnusedForTheSecond) {
  TestIterator one, other(100);
  const auto record = std::make_shared<ReadSet>();
  one.Read(record);
  other.Read(record);
  const auto moment = BeginSave();
  EXPECT_EQ(one.UnusedAt(moment->value()), Numbers{0});
  EXPECT_TRUE(record->Use());
  EXPECT_EQ(other.UnusedAt(moment->value()), Numbers{100});
  // A save that begins now is one of the state after the step.
  EXPECT_EQ(one.Unused(), Numbers());
  EXPECT_EQ(other.Unused(), Numbers());
}

TEST(SaveMomentTest, WhatAnOpenSaveMayNeedIsNotPruned) {
  TestIterator iterator;
  const auto first = ReadNext(&iterator), second = ReadNext(&iterator);
  EXPECT_TRUE(first->Use());
  auto moment = BeginSave();
  EXPECT_TRUE(second->Use());
  EXPECT_FALSE(SaveMoment::MayNeed(*first));
  EXPECT_TRUE(SaveMoment::MayNeed(*second));
  // Reads and other saves prune.
  const auto third = ReadNext(&iterator);
  EXPECT_EQ(iterator.Unused(), Numbers{2});
  EXPECT_EQ(iterator.UnusedAt(moment->value()), (Numbers{1, 2}));
  moment.reset();
  EXPECT_FALSE(SaveMoment::MayNeed(*second));
  EXPECT_EQ(iterator.Unused(), Numbers{2});
}

TEST(SaveMomentTest, OfSeveralSavesTheOldestKeepsWhatItNeeds) {
  TestIterator iterator;
  auto first = BeginSave();
  EXPECT_TRUE(ReadNext(&iterator)->Use());
  auto second = BeginSave();
  EXPECT_LT(first->value(), second->value());
  EXPECT_TRUE(ReadNext(&iterator)->Use());
  EXPECT_EQ(iterator.UnusedAt(first->value()), (Numbers{0, 1}));
  EXPECT_EQ(iterator.UnusedAt(second->value()), Numbers{1});
  first.reset();
  EXPECT_EQ(iterator.Unused(), Numbers());
  EXPECT_EQ(iterator.UnusedAt(second->value()), Numbers{1});
}

TEST(SaveMomentTest, TwoSavesOfOneIteratorAtOnceHaveBothWhatWaits) {
  TestIterator iterator;
  const auto record = ReadNext(&iterator);
  const auto first = BeginSave();
  const auto second = BeginSave();
  EXPECT_EQ(iterator.UnusedAt(second->value()), Numbers{0});
  EXPECT_TRUE(record->Use());
  EXPECT_EQ(iterator.UnusedAt(first->value()), Numbers{0});
  EXPECT_EQ(iterator.UnusedAt(second->value()), Numbers{0});
}

// What the program itself reads between two saves of a run.
TEST(SaveMomentTest, AReadOfTheProgramCountsAsAUse) {
  TestIterator iterator;
  const auto record = ReadNext(&iterator);
  const auto moment = BeginSave();
  EXPECT_EQ(iterator.ReadBeside(), 0);
  EXPECT_EQ(iterator.Unused(), Numbers());
  EXPECT_EQ(iterator.UnusedAt(moment->value()), Numbers{0});
  EXPECT_FALSE(record->Use());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
