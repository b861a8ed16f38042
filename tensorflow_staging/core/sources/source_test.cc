// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>  // NOLINT
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

using Reads = std::shared_ptr<ReadSet>;

Reads MakeReads() { return std::make_shared<ReadSet>(); }

// Begins a turn, which must be free.
int64_t BeginTurn(Source* source) {
  CancellationManager cancellation;
  const StatusOr<int64_t> turn = source->AwaitTurn(&cancellation);
  TF_CHECK_OK(turn.status());
  return *turn;
}

TEST(SourceTest, AnIteratorHasOneSourceUntilItIsForgotten) {
  const int iterator = 0;
  EXPECT_EQ(Source::Find(&iterator), nullptr);
  const std::shared_ptr<Source> source = Source::Of(&iterator);
  EXPECT_EQ(Source::Of(&iterator), source);
  EXPECT_EQ(Source::Find(&iterator), source);
  EXPECT_TRUE(absl::c_linear_search(Source::All(), source));
  Source::Forget(&iterator);
  Source::Forget(&iterator);
  EXPECT_EQ(Source::Find(&iterator), nullptr);
  EXPECT_NE(Source::Of(&iterator), source);
  Source::Forget(&iterator);
}

// A record and the ledger's entry own each other.
TEST(SourceTest, AForgottenIteratorLeavesNothing) {
  std::weak_ptr<Source> source;
  {
    TestIterator iterator;
    source = iterator.source();
    const Reads reads = MakeReads();
    EXPECT_EQ(iterator.Read(reads), 0);
  }
  EXPECT_EQ(source.lock(), nullptr);
}

TEST(SourceTest, KnowsWhetherAnyIteratorIsReadAhead) {
  EXPECT_FALSE(Source::AnyIsReadAhead());
  {
    TestIterator iterator, other;
    for (int i = 0; i < 2; ++i) iterator.source()->NoteReadAhead();
    EXPECT_TRUE(Source::AnyIsReadAhead());
    EXPECT_TRUE(iterator.source()->is_read_ahead());
    EXPECT_FALSE(other.source()->is_read_ahead());
  }
  EXPECT_FALSE(Source::AnyIsReadAhead());
}

TEST(SourceTest, ReadsTakeTurns) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const int64_t turn = BeginTurn(&source);
  std::atomic<bool> has_ended = false;
  std::thread next([&] {
    const int64_t next_turn = BeginTurn(&source);
    EXPECT_TRUE(has_ended);
    EXPECT_NE(next_turn, turn);
    // The end of an earlier turn ends no later one.
    source.EndTurn(turn);
    CancellationManager cancelled;
    cancelled.StartCancel();
    EXPECT_TRUE(errors::IsCancelled(source.AwaitTurn(&cancelled).status()));
    source.EndTurn(next_turn);
  });
  has_ended = true;
  source.EndTurn(turn);
  next.join();
}

TEST(SourceTest, ACancelledReadWaitsForNoTurn) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const int64_t turn = BeginTurn(&source);
  CancellationManager cancellation;
  std::thread reads([&] {
    EXPECT_TRUE(errors::IsCancelled(source.AwaitTurn(&cancellation).status()));
  });
  cancellation.StartCancel();
  reads.join();
  // The turn is still that of the first one.
  source.EndTurn(turn);
  source.EndTurn(BeginTurn(&source));
}

TEST(SourceTest, WhoReadsTheOldIteratorHoldsUpNobody) {
  TestIterator iterator;
  const int64_t old_turn = BeginTurn(iterator.source().get());
  iterator.source()->NoteRead(old_turn);
  iterator.Change();
  const int64_t turn = BeginTurn(iterator.source().get());
  iterator.source()->EndTurn(old_turn);
  CancellationManager cancelled;
  cancelled.StartCancel();
  EXPECT_FALSE(iterator.source()->AwaitTurn(&cancelled).ok());
  iterator.source()->EndTurn(turn);
}

TEST(SourceTest, WhoHasNotBegunToReadKeepsItsTurn) {
  TestIterator iterator;
  const int64_t turn = BeginTurn(iterator.source().get());
  iterator.Change();
  CancellationManager cancelled;
  cancelled.StartCancel();
  EXPECT_FALSE(iterator.source()->AwaitTurn(&cancelled).ok());
  iterator.source()->EndTurn(turn);
}

TEST(SourceTest, NobodyReadsDuringAClaim) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.BeginClaim();
  source.BeginClaim();
  CancellationManager cancelled;
  std::thread cancelled_read([&] {
    EXPECT_TRUE(errors::IsCancelled(source.AwaitTurn(&cancelled).status()));
  });
  std::atomic<bool> has_ended = false;
  std::thread read([&] {
    EXPECT_EQ(iterator.Read(MakeReads()), 0);
    EXPECT_TRUE(has_ended);
  });
  cancelled.StartCancel();
  cancelled_read.join();
  source.EndClaim();
  has_ended = true;
  source.EndClaim();
  read.join();
}

// The claim is for all that has not been used, so the run gives back the rest,
// too.
TEST(SourceTest, AReadThatAClaimOvertakesKeepsNothing) {
  TestIterator iterator;
  const Reads reads = MakeReads();
  iterator.DuringNextRead([&] { iterator.source()->BeginClaim(); });
  EXPECT_EQ(iterator.Read(reads), kStaleRead);
  EXPECT_TRUE(reads->is_stale());
  EXPECT_EQ(iterator.Unused(), Numbers{0});
  iterator.source()->EndClaim();
  EXPECT_EQ(iterator.Read(MakeReads()), 0);
}

TEST(SourceTest, AnOlderElementThatComesBackDuringAReadIsReadFirst) {
  TestIterator iterator;
  const Reads earlier = MakeReads();
  EXPECT_EQ(iterator.Read(earlier), 0);
  EXPECT_EQ(iterator.Read(earlier), 1);
  const Reads reads = MakeReads();
  iterator.DuringNextRead([&] { GiveBack(earlier); });
  EXPECT_EQ(iterator.Read(reads), 0);
  EXPECT_EQ(iterator.Read(reads), 1);
  // What the iterator has yielded meanwhile.
  EXPECT_EQ(iterator.Read(reads), 2);
  EXPECT_EQ(iterator.Read(reads), 3);
}

TEST(SourceTest, AnElementThatComesBackAtTheEndIsReadBeforeIt) {
  TestIterator iterator(/*begin=*/0, /*end=*/1);
  const Reads earlier = MakeReads();
  EXPECT_EQ(iterator.Read(earlier), 0);
  const Reads reads = MakeReads();
  iterator.DuringNextRead([&] { GiveBack(earlier); });
  EXPECT_EQ(iterator.Read(reads), 0);
  EXPECT_EQ(iterator.Read(reads), kEndOfData);
}

TEST(SourceTest, ARunThatBecomesStaleInItsReadLeavesTheElement) {
  TestIterator iterator;
  const Reads reads = MakeReads();
  EXPECT_EQ(iterator.Read(reads), 0);
  iterator.DuringNextRead([&] { GiveBack(reads); });
  EXPECT_EQ(iterator.Read(reads), kStaleRead);
  EXPECT_EQ(iterator.Read(reads), kStaleRead);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(iterator.Read(MakeReads()), i);
}

TEST(SourceTest, WhatTheOldIteratorYieldsIsVoid) {
  TestIterator iterator, other(100);
  const Reads reads = MakeReads();
  EXPECT_EQ(other.Read(reads), 100);
  iterator.DuringNextRead([&] { iterator.Change(/*begin=*/50); });
  EXPECT_EQ(iterator.Read(reads), kStaleRead);
  EXPECT_TRUE(reads->is_stale());
  EXPECT_EQ(iterator.Read(MakeReads()), 50);
  EXPECT_EQ(other.Read(MakeReads()), 100);
}

TEST(SourceTest, AReadOfTheOldVersionGetsNoEntryOfTheNewOne) {
  TestIterator iterator;
  const int64_t version = iterator.source()->version();
  iterator.Change(/*begin=*/0, /*end=*/1, /*restored=*/{7});
  EXPECT_EQ(iterator.source()->version(), version + 1);
  std::shared_ptr<const Outcome> outcome;
  for (const Reads& reads : {MakeReads(), Reads()}) {
    EXPECT_EQ(iterator.source()->TakeBack(version, reads, &outcome),
              Source::Got::kStale);
  }
  EXPECT_EQ(outcome, nullptr);
  EXPECT_EQ(iterator.Unused(), Numbers{7});
}

TEST(SourceTest, TheProgramReadsTheNextElementBesideAStage) {
  TestIterator iterator;
  const Reads used = MakeReads(), ahead = MakeReads();
  EXPECT_EQ(iterator.Read(used), 0);
  EXPECT_EQ(iterator.Read(ahead), 1);
  EXPECT_EQ(iterator.Read(ahead), 2);
  EXPECT_TRUE(used->Use());
  EXPECT_EQ(iterator.ReadBeside(), 1);
  EXPECT_TRUE(ahead->is_stale());
  EXPECT_EQ(iterator.Read(MakeReads()), 2);
  EXPECT_EQ(iterator.ReadBeside(), 2);
  EXPECT_EQ(iterator.ReadBeside(), 3);
  EXPECT_EQ(iterator.source()->CountReadBeside(), 1);
  EXPECT_EQ(iterator.source()->CountReadBeside(), 2);
}

TEST(SourceTest, KnowsWhetherItHasBeenUsedSinceItWasRestored) {
  TestIterator iterator;
  Source& source = *iterator.source();
  EXPECT_FALSE(source.HasBeenUsed());
  const Reads reads = MakeReads();
  EXPECT_EQ(iterator.Read(reads), 0);
  EXPECT_FALSE(source.HasBeenUsed());
  EXPECT_TRUE(reads->Use());
  EXPECT_TRUE(source.HasBeenUsed());
  // An initialiser does not make it unused.
  iterator.Change();
  EXPECT_TRUE(source.HasBeenUsed());
  source.BeginUse();
  EXPECT_FALSE(source.HasBeenUsed());
  EXPECT_TRUE(source.is_read_ahead());
  EXPECT_EQ(iterator.ReadBeside(), 0);
  EXPECT_TRUE(source.HasBeenUsed());
}

TEST(SourceTest, KnowsWhetherAStagedRunReadsTheVersionBefore) {
  TestIterator iterator;
  Source& source = *iterator.source();
  EXPECT_FALSE(source.IsLastVersionRead());
  const int64_t staged = BeginTurn(&source);
  source.NoteStagedRead(staged);
  EXPECT_FALSE(source.IsLastVersionRead());
  iterator.Change();
  EXPECT_TRUE(source.IsLastVersionRead());
  // The next read is of the new version.
  const int64_t next = BeginTurn(&source);
  source.NoteStagedRead(next);
  source.EndTurn(next);
  EXPECT_TRUE(source.IsLastVersionRead());
  source.EndTurn(staged);
  EXPECT_FALSE(source.IsLastVersionRead());
}

TEST(SourceTest, AReadOfTheProgramIsNoStagedOne) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const int64_t staged = BeginTurn(&source);
  source.NoteStagedRead(staged);
  source.EndTurn(staged);
  const int64_t program = BeginTurn(&source);
  iterator.Change();
  EXPECT_FALSE(source.IsLastVersionRead());
  source.EndTurn(program);
}

// Several threads read and use, some give back what they have read, and the
// program reads beside them: each number is used once.
TEST(SourceTest, EachElementIsUsedOnce) {
  constexpr int kThreads = 4;
  constexpr int64_t kNumbers = 2000;
  TestIterator iterator(/*begin=*/0, /*end=*/kNumbers);
  std::vector<std::atomic<int>> uses(kNumbers);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0;; ++i) {
        Numbers numbers;
        const Reads reads = MakeReads();
        for (int j = 0; j <= i % 3; ++j)
          numbers.push_back(iterator.Read(reads));
        if (numbers[0] == kEndOfData) {
          if (!reads->is_stale()) return;
        } else if ((i + t) % 5 == 0) {
          GiveBack(reads);
        } else if (reads->Use()) {
          for (int64_t number : numbers) {
            if (number >= 0) ++uses[number];
          }
        }
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const int64_t number = iterator.ReadBeside();
    if (number >= 0) ++uses[number];
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : uses) ASSERT_EQ(count, 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
