// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/read_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>  // NOLINT

#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

HeldEntry EntryOf(const TestIterator& iterator, int64_t number) {
  return {iterator.source(), iterator.source()->version(), number,
          std::make_shared<Outcome>()};
}

TEST(ReadSetTest, IsHeldUntilAStepUsesIt) {
  TestIterator iterator;
  ReadSet reads;
  EXPECT_TRUE(reads.empty());
  EXPECT_TRUE(reads.Add(EntryOf(iterator, 7)));
  EXPECT_FALSE(reads.empty());
  EXPECT_FALSE(reads.is_used());
  EXPECT_FALSE(reads.is_stale());
  EXPECT_TRUE(reads.Use());
  EXPECT_TRUE(reads.is_used());
  int entries = 0;
  reads.ForEach([&](const HeldEntry& entry) {
    EXPECT_EQ(entry.number, 7);
    ++entries;
  });
  EXPECT_EQ(entries, 1);
}

TEST(ReadSetTest, NoStepMayUseAStaleOneAndNothingIsAdded) {
  TestIterator iterator;
  const auto reads = std::make_shared<ReadSet>();
  EXPECT_TRUE(reads->Add(EntryOf(iterator, 0)));
  GiveBack(reads);
  EXPECT_TRUE(reads->is_stale());
  EXPECT_TRUE(reads->empty());
  EXPECT_FALSE(reads->Use());
  EXPECT_FALSE(reads->is_used());
  EXPECT_FALSE(reads->Add(EntryOf(iterator, 1)));
  EXPECT_TRUE(reads->empty());
}

TEST(ReadSetTest, AUsedOneNeverBecomesStale) {
  const auto reads = std::make_shared<ReadSet>();
  EXPECT_TRUE(reads->Use());
  GiveBack(reads);
  EXPECT_FALSE(reads->is_stale());
  EXPECT_TRUE(reads->is_used());
}

TEST(ReadSetTest, ASaveCountsWhatIsUsedAfterItsMomentAsUnused) {
  ReadSet before, after;
  EXPECT_TRUE(before.Use());
  const auto moment = BeginSave();
  EXPECT_FALSE(before.IsUnusedAt(moment->value()));
  EXPECT_TRUE(after.IsUnusedAt(moment->value()));
  EXPECT_TRUE(after.Use());
  EXPECT_TRUE(after.IsUnusedAt(moment->value()));
  // To use it again changes nothing.
  const auto later = BeginSave();
  EXPECT_TRUE(after.Use());
  EXPECT_FALSE(after.IsUnusedAt(later->value()));
}

// Either the step has the elements, or they go back: never both.
TEST(ReadSetTest, AUseRacesWithARollBack) {
  for (int i = 0; i < 2000; ++i) {
    TestIterator iterator;
    const auto reads = std::make_shared<ReadSet>();
    EXPECT_EQ(iterator.Read(reads), 0);
    std::atomic<bool> begin = false;
    bool is_used = false;
    std::thread step([&] {
      while (!begin) {
      }
      is_used = reads->Use();
    });
    begin = true;
    RollBack().GiveBackAll(iterator.source());
    step.join();
    EXPECT_NE(is_used, reads->is_stale());
    EXPECT_EQ(iterator.ReadBeside(), is_used ? 1 : 0);
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
