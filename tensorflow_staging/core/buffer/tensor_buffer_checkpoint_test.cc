// SPDX-License-Identifier: Apache-2.0
//
// Tests that a TensorBuffer pauses its stage, shows its records, and takes them
// back.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

using Numbers = std::vector<int64_t>;

Numbers NumbersOf(const TensorBuffer& buffer) {
  Numbers numbers;
  for (const Record& record : buffer.Records()) {
    numbers.push_back(record[0].scalar<int64_t>()());
  }
  return numbers;
}

std::vector<Record> RecordsOf(const Numbers& numbers) {
  std::vector<Record> records;
  for (int64_t number : numbers) records.push_back(MakeRecord(number));
  return records;
}

// Begins a run of the stage, which must be admitted at once.
void BeginRun(TensorBuffer* buffer) {
  PutResult begun;
  buffer->BeginRunAsync(nullptr, begun.Callback());
  ASSERT_TRUE(begun.done());
}

// Puts a record as a run of the stage does.
void RunStage(TensorBuffer* buffer, int64_t number) {
  BeginRun(buffer);
  ASSERT_EQ(Put(buffer, number), OkStatus());
  buffer->EndRun(/*has_put=*/true);
}

// A pause; the constructor begins it.
class Pause {
 public:
  explicit Pause(TensorBuffer* buffer,
                 CancellationManager* cancellation = nullptr) {
    buffer->PauseAsync(cancellation, begun_.Callback());
  }

  bool begun() const { return begun_.done(); }
  Status Begin() { return begun_.Wait(); }

 private:
  PutResult begun_;
};

TEST(TensorBufferCheckpointTest, APauseWaitsForTheActiveRunsAndHoldsTheNext) {
  auto buffer = MakeBuffer(2);
  BeginRun(buffer.get());
  Pause pause(buffer.get());
  EXPECT_FALSE(pause.begun());
  PutResult next;
  buffer->BeginRunAsync(nullptr, next.Callback());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_FALSE(pause.begun());
  buffer->EndRun(/*has_put=*/true);
  EXPECT_EQ(pause.Begin(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), Numbers{1});
  EXPECT_FALSE(next.done());
  buffer->EndPause();
  EXPECT_EQ(next.Wait(), OkStatus());
  buffer->EndRun(/*has_put=*/true);
}

TEST(TensorBufferCheckpointTest, ARunThatWaitsForRoomIsQuietAndItsRecordShown) {
  auto buffer = MakeBuffer(1);
  RunStage(buffer.get(), 1);
  BeginRun(buffer.get());
  Pause pause(buffer.get());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback());
  EXPECT_EQ(pause.Begin(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), (Numbers{1, 2}));
  // The step goes on meanwhile.
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), Numbers{2});
  buffer->EndRun(/*has_put=*/true);
  buffer->EndPause();
}

TEST(TensorBufferCheckpointTest, OverlappingPausesEndWithTheLast) {
  auto buffer = MakeBuffer(1);
  Pause first(buffer.get()), second(buffer.get());
  PutResult run;
  buffer->BeginRunAsync(nullptr, run.Callback());
  buffer->EndPause();
  EXPECT_FALSE(run.done());
  buffer->EndPause();
  EXPECT_EQ(run.Wait(), OkStatus());
  buffer->EndRun(/*has_put=*/true);
}

TEST(TensorBufferCheckpointTest, APauseEndsWhenItsRunIsCancelled) {
  auto buffer = MakeBuffer(1);
  BeginRun(buffer.get());
  CancellationManager cancellation;
  Pause pause(buffer.get(), &cancellation);
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(pause.Begin()));
  // Nothing is paused any more.
  BeginRun(buffer.get());
  buffer->EndRun(/*has_put=*/true);
  buffer->EndRun(/*has_put=*/true);
}

TEST(TensorBufferCheckpointTest, APauseThatTakesTooLongSaysWhatItWaitsFor) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.restart_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  BeginRun(buffer.get());
  Pause pause(buffer.get());
  const Status status = pause.Begin();
  EXPECT_TRUE(errors::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "1 of its runs")) << status;
  buffer->EndRun(/*has_put=*/false);
}

TEST(TensorBufferCheckpointTest, AStageThatAdmitsNoRunsCannotBeSaved) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  Pause pause(buffer.get());
  EXPECT_TRUE(errors::IsFailedPrecondition(pause.Begin()));
}

TEST(TensorBufferCheckpointTest, TheRecordsOfAStoppedStageStay) {
  auto buffer = MakeBuffer(1);
  RunStage(buffer.get(), 1);
  BeginRun(buffer.get());
  BeginRun(buffer.get());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback());
  buffer->Cancel();
  EXPECT_EQ(waiting.Wait(), OkStatus());
  // A run that is still computing when the stage stops.
  EXPECT_EQ(Put(buffer.get(), 3), OkStatus());
  buffer->EndRun(/*has_put=*/true);
  buffer->EndRun(/*has_put=*/true);
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 4)));
  EXPECT_EQ(NumbersOf(*buffer), (Numbers{1, 2, 3}));
  Pause pause(buffer.get());
  EXPECT_EQ(pause.Begin(), OkStatus());
  buffer->EndPause();
  ExpectBalanced(*buffer);
}

TEST(TensorBufferCheckpointTest, RestoredRecordsComeFirstAndReplaceTheOld) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult restart;
  buffer->RestartAsync(nullptr, restart.Callback());
  EXPECT_EQ(restart.Wait(), OkStatus());
  EXPECT_EQ(buffer->Restore(RecordsOf({5, 6, 7})), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  buffer->EndRestart();
  EXPECT_EQ(take.value(), 5);
  PutResult waiting;
  buffer->PutAsync(MakeRecord(8), kNoTimeout, nullptr, waiting.Callback());
  EXPECT_EQ(Take(buffer.get()), 6);
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(Take(buffer.get()), 7);
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 8);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferCheckpointTest, RecordsAreRestoredOnlyDuringARestart) {
  auto buffer = MakeBuffer(1);
  EXPECT_TRUE(errors::IsFailedPrecondition(buffer->Restore(RecordsOf({1}))));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
