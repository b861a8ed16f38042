// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/ledger.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

std::shared_ptr<const Outcome> MakeOutcome() {
  return std::make_shared<Outcome>();
}

std::shared_ptr<ReadSet> Used() {
  auto used = std::make_shared<ReadSet>();
  EXPECT_TRUE(used->Use());
  return used;
}

int64_t Prune(Ledger* ledger) {
  Ledger::Removed removed;
  ledger->Prune(&removed);
  return removed.size();
}

TEST(LedgerTest, TheOldestEntryThatIsBackComesFirst) {
  Ledger ledger;
  EXPECT_TRUE(ledger.empty());
  EXPECT_EQ(ledger.FirstBack(), ledger.end());
  const auto reads = std::make_shared<ReadSet>();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ledger.Add(MakeOutcome()), i);
  EXPECT_EQ(ledger.FirstBack(), 0);
  EXPECT_EQ(ledger.SetHolder(0, reads), nullptr);
  EXPECT_EQ(ledger.FirstBack(), 1);
  EXPECT_EQ(ledger.SetHolder(1, reads), nullptr);
  EXPECT_EQ(ledger.SetHolder(2, reads), nullptr);
  EXPECT_EQ(ledger.FirstBack(), ledger.end());
  EXPECT_EQ(ledger.SetHolder(1, nullptr), reads);
  EXPECT_EQ(ledger.FirstBack(), 1);
}

TEST(LedgerTest, AnEntryMayGoFromOneHolderToAnother) {
  Ledger ledger;
  const auto record = std::make_shared<ReadSet>();
  const auto run = std::make_shared<ReadSet>();
  ledger.Add(MakeOutcome());
  ledger.SetHolder(0, record);
  EXPECT_EQ(ledger.SetHolder(0, run), record);
  EXPECT_EQ(ledger.FirstBack(), ledger.end());
}

TEST(LedgerTest, UsedEntriesGoWhenTheyAreTheOldest) {
  Ledger ledger;
  for (int i = 0; i < 4; ++i) ledger.Add(MakeOutcome());
  const auto held = std::make_shared<ReadSet>();
  ledger.SetHolder(0, held);
  ledger.SetHolder(1, Used());
  ledger.SetHolder(3, Used());
  EXPECT_EQ(Prune(&ledger), 0);
  EXPECT_TRUE(held->Use());
  EXPECT_EQ(Prune(&ledger), 2);
  // The next one is back. The numbers of the others stay.
  EXPECT_EQ(ledger.begin(), 2);
  EXPECT_EQ(ledger.end(), 4);
  EXPECT_FALSE(ledger.Has(1));
  EXPECT_TRUE(ledger.Has(3));
  EXPECT_FALSE(ledger.Has(4));
  EXPECT_EQ(ledger.FirstBack(), 2);
}

TEST(LedgerTest, NothingGoesThatASaveMayNeed) {
  Ledger ledger;
  ledger.Add(MakeOutcome());
  ledger.Add(MakeOutcome());
  ledger.SetHolder(0, Used());
  {
    const auto moment = BeginSave();
    // What was used before the moment is not needed.
    EXPECT_EQ(Prune(&ledger), 1);
    ledger.SetHolder(1, Used());
    EXPECT_EQ(Prune(&ledger), 0);
    EXPECT_EQ(ledger.UnusedAt(moment->value()).size(), 1);
  }
  EXPECT_EQ(Prune(&ledger), 1);
}

TEST(LedgerTest, ASaveHasWhatIsOutAndBackAndWhatIsUsedLater) {
  Ledger ledger;
  Outcomes outcomes;
  for (int i = 0; i < 4; ++i) {
    outcomes.push_back(MakeOutcome());
    ledger.Add(outcomes.back());
  }
  ledger.SetHolder(0, Used());
  const auto moment = BeginSave();
  ledger.SetHolder(1, Used());
  ledger.SetHolder(2, std::make_shared<ReadSet>());
  EXPECT_EQ(ledger.UnusedAt(moment->value()),
            (Outcomes{outcomes[1], outcomes[2], outcomes[3]}));
}

TEST(LedgerTest, KnowsWhetherAnythingHasBeenUsed) {
  Ledger ledger;
  const auto reads = std::make_shared<ReadSet>();
  ledger.Add(MakeOutcome());
  EXPECT_FALSE(ledger.HasBeenUsed());
  ledger.SetHolder(0, reads);
  EXPECT_FALSE(ledger.HasBeenUsed());
  reads->Use();
  EXPECT_TRUE(ledger.HasBeenUsed());
  // Also when it has gone.
  EXPECT_EQ(Prune(&ledger), 1);
  EXPECT_TRUE(ledger.HasBeenUsed());
  ledger.BeginUse();
  EXPECT_FALSE(ledger.HasBeenUsed());
}

TEST(LedgerTest, AnErrorIsNoUseOfTheData) {
  Ledger ledger;
  auto error = std::make_shared<Outcome>();
  error->status = errors::FailedPrecondition("not initialised");
  ledger.Add(error);
  ledger.SetHolder(0, Used());
  EXPECT_FALSE(ledger.HasBeenUsed());
  EXPECT_EQ(Prune(&ledger), 1);
  EXPECT_FALSE(ledger.HasBeenUsed());
}

TEST(LedgerTest, ClearLeavesNothingAndNumbersOn) {
  Ledger ledger;
  ledger.Add(MakeOutcome());
  ledger.Add(MakeOutcome());
  ledger.SetHolder(0, Used());
  EXPECT_EQ(ledger.Clear().size(), 2);
  EXPECT_TRUE(ledger.empty());
  EXPECT_FALSE(ledger.HasBeenUsed());
  EXPECT_EQ(ledger.FirstBack(), ledger.end());
  EXPECT_EQ(ledger.Add(MakeOutcome()), 2);
  EXPECT_EQ(ledger.FirstBack(), 2);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
