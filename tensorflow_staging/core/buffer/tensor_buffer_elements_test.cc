// SPDX-License-Identifier: Apache-2.0
//
// Tests that a TensorBuffer which keeps elements gives back what no take has
// used: each element once, in the order in which it was read.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

using Numbers = std::vector<int64_t>;

core::RefCountPtr<TensorBuffer> MakeKeeper(int64_t capacity,
                                           int64_t capacity_bytes = 0) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.capacity = capacity;
  options.capacity_bytes = capacity_bytes;
  options.keeps_elements = true;
  return core::RefCountPtr<TensorBuffer>(new TensorBuffer(options));
}

// Lets a run read the element `number` of `iterator`.
void Read(StagedRun* run, const TestIterator& iterator, int64_t number) {
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  run->Keep(
      {*iterator.reads().begin(), MakeRecord(number), Source::NextOrder()});
}

// A run reads an element, and puts a record with the same number.
void RunStage(TensorBuffer* buffer, const TestIterator& iterator,
              int64_t number) {
  const auto run = BeginRun(buffer);
  Read(run.get(), iterator, number);
  EXPECT_EQ(Put(run.get(), number), OkStatus());
}

// A run reads an element, and fails.
void FailRun(TensorBuffer* buffer, const TestIterator& iterator,
             int64_t number) {
  const auto run = BeginRun(buffer);
  Read(run.get(), iterator, number);
  EXPECT_FALSE(run->End(errors::DataLoss("bad record")));
}

Numbers ElementsOf(const TensorBuffer& buffer, const TestIterator& iterator) {
  Numbers numbers;
  for (const ReadElement& element :
       buffer.ElementsOf(iterator.source().get())) {
    numbers.push_back(element.tensors[0].scalar<int64_t>()());
  }
  return numbers;
}

TEST(TensorBufferElementsTest, WhatNoTakeHasUsedIsGivenBack) {
  auto buffer = MakeKeeper(3);
  TestIterator iterator;
  for (int64_t number : {0, 1, 2}) RunStage(buffer.get(), iterator, number);
  EXPECT_EQ(Take(buffer.get()), 0);
  buffer->GiveBackElements();
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers({1, 2}));
  EXPECT_EQ(buffer->Size(), 0);
  buffer->GiveBackElements();
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers());
}

TEST(TensorBufferElementsTest, TheOrderIsThatOfTheReads) {
  auto buffer = MakeKeeper(2);
  TestIterator iterator;
  const auto first = BeginRun(buffer.get(), /*producer=*/1);
  const auto second = BeginRun(buffer.get(), /*producer=*/2);
  Read(first.get(), iterator, 0);
  Read(second.get(), iterator, 1);
  EXPECT_EQ(Put(second.get(), 1), OkStatus());
  EXPECT_EQ(Put(first.get(), 0), OkStatus());
  buffer->GiveBackElements();
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers({0, 1}));
}

TEST(TensorBufferElementsTest, WhatIsReadAgainKeepsItsPlace) {
  auto buffer = MakeKeeper(3);
  TestIterator iterator;
  for (int64_t number : {0, 1, 2}) RunStage(buffer.get(), iterator, number);
  buffer->GiveBackElements();
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  auto again = iterator.source()->TakeGivenBack(iterator.source()->version());
  ASSERT_TRUE(again.has_value());
  run->Keep({*iterator.reads().begin(), again->tensors, again->order});
  EXPECT_EQ(Put(run.get(), 0), OkStatus());
  buffer->GiveBackElements();
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers({0, 1, 2}));
}

TEST(TensorBufferElementsTest, ARecordThatWaitsForRoomIsGivenBack) {
  auto buffer = MakeKeeper(1);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 0);
  const auto run = BeginRun(buffer.get());
  Read(run.get(), iterator, 1);
  PutResult put;
  buffer->PutAsync(MakeRecord(1), kNoTimeout, nullptr, put.Callback(),
                   run.get());
  EXPECT_FALSE(put.done());
  EXPECT_EQ(ElementsOf(*buffer, iterator), Numbers({0, 1}));
  buffer->GiveBackElements();
  EXPECT_EQ(put.Wait(), OkStatus());
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers({0, 1}));
}

TEST(TensorBufferElementsTest, AnErrorThatNoTakeHasGotCanComeAgain) {
  auto buffer = MakeKeeper(2);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 0);
  FailRun(buffer.get(), iterator, 1);
  buffer->Close(errors::DataLoss("bad record"));
  buffer->GiveBackElements();
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers({0, 1}));
}

TEST(TensorBufferElementsTest, AnErrorWhoseElementWasGivenBackEndsNoStage) {
  auto buffer = MakeKeeper(2);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 0);
  FailRun(buffer.get(), iterator, 1);
  // Another read comes between the end of the run and what its producer says.
  buffer->GiveBackElements();
  buffer->Close(errors::DataLoss("bad record"));
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers({0, 1}));
  RunStage(buffer.get(), iterator, 2);
  EXPECT_EQ(Take(buffer.get()), 2);
}

TEST(TensorBufferElementsTest, AnErrorThatATakeHasGotDoesNotComeAgain) {
  auto buffer = MakeKeeper(2);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 0);
  FailRun(buffer.get(), iterator, 1);
  buffer->Close(errors::DataLoss("bad record"));
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_TRUE(errors::IsDataLoss(TakeStatus(buffer.get())));
  buffer->GiveBackElements();
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers());
}

TEST(TensorBufferElementsTest, AnotherIteratorGoesOnIfOneGetsOtherData) {
  auto buffer = MakeKeeper(2);
  TestIterator changes, stays;
  const auto run = BeginRun(buffer.get());
  Read(run.get(), changes, 0);
  Read(run.get(), stays, 10);
  EXPECT_EQ(Put(run.get(), 0), OkStatus());
  changes.Change();
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(changes.TakeGivenBack(), Numbers());
  EXPECT_EQ(stays.TakeGivenBack(), Numbers({10}));
}

TEST(TensorBufferElementsTest, ACheckpointGetsElementsInsteadOfRecords) {
  auto buffer = MakeKeeper(2);
  TestIterator iterator, other;
  RunStage(buffer.get(), iterator, 0);
  RunStage(buffer.get(), other, 10);
  EXPECT_TRUE(buffer->Records().empty());
  EXPECT_EQ(ElementsOf(*buffer, iterator), Numbers({0}));
  EXPECT_EQ(ElementsOf(*buffer, other), Numbers({10}));
}

TEST(TensorBufferElementsTest, ElementsCountAsBytesUnlessTheRecordHasThem) {
  TestIterator iterator;
  for (const bool shares : {false, true}) {
    auto buffer = MakeKeeper(/*capacity=*/8, /*capacity_bytes=*/16);
    for (int64_t number : {0, 1}) {
      const auto run = BeginRun(buffer.get());
      Record record = MakeRecord(number);
      run->Keep({*iterator.reads().begin(),
                 shares ? record : MakeRecord(number), Source::NextOrder()});
      PutResult put;
      buffer->PutAsync(std::move(record), kNoTimeout, nullptr, put.Callback(),
                       run.get());
      EXPECT_EQ(put.done(), shares || number == 0);
    }
    buffer->Cancel();
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
