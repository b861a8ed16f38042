// SPDX-License-Identifier: Apache-2.0
//
// Tests that a profiler's trace shows how long each op of a stage waited.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/tsl/profiler/backends/cpu/traceme_recorder.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"
#include "tensorflow/tsl/profiler/utils/time_utils.h"
#include "tensorflow_staging/core/testing/stage_session.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::tsl::profiler::GetCurrentTimeNanos;
using ::tsl::profiler::TraceMeRecorder;

// Records a trace as long as it lives.
class Trace {
 public:
  explicit Trace(int level) { EXPECT_TRUE(TraceMeRecorder::Start(level)); }
  ~Trace() {
    if (!stopped_) TraceMeRecorder::Stop();
  }

  // Ends the trace and returns the events of one op of a stage, except those
  // of the executor. May be called once.
  std::vector<TraceMeRecorder::Event> Stop(const std::string& op) {
    stopped_ = true;
    std::vector<TraceMeRecorder::Event> found;
    for (const auto& thread : TraceMeRecorder::Stop()) {
      for (const auto& event : thread.events) {
        if (event.IsComplete() && absl::StartsWith(event.name, op + "#")) {
          found.push_back(event);
        }
      }
    }
    return found;
  }

 private:
  bool stopped_ = false;
};

TEST(TraceTest, ATakeThatWaitsLastsUntilItsRecordComes) {
  StageSession session(/*capacity=*/2);
  Trace trace(tsl::profiler::TraceMeLevel::kInfo);
  ASSERT_EQ(session.Run("TensorBufferResume"), OkStatus());
  int64_t waiting = 0;
  {
    InThread take([&] { EXPECT_EQ(session.Take(), 7); });
    session.AwaitWaiting("0 puts and 1 takes");
    waiting = GetCurrentTimeNanos();
    EXPECT_EQ(session.Put(7), OkStatus());
  }
  const auto takes = trace.Stop("TensorBufferTake");
  ASSERT_EQ(takes.size(), 1);
  EXPECT_EQ(takes[0].name, "TensorBufferTake#stage=prefetch,records=0#");
  EXPECT_LT(takes[0].start_time, waiting);
  EXPECT_GT(takes[0].end_time, waiting);
}

TEST(TraceTest, APutThatWaitsLastsUntilThereIsRoom) {
  StageSession session(/*capacity=*/1);
  EXPECT_EQ(session.Put(1), OkStatus());
  Trace trace(tsl::profiler::TraceMeLevel::kInfo);
  int64_t waiting = 0;
  {
    InThread put([&] { EXPECT_EQ(session.Put(2), OkStatus()); });
    session.AwaitWaiting("1 puts and 0 takes");
    waiting = GetCurrentTimeNanos();
    EXPECT_EQ(session.Take(), 1);
  }
  const auto puts = trace.Stop("TensorBufferPut");
  ASSERT_EQ(puts.size(), 1);
  EXPECT_EQ(puts[0].name, "TensorBufferPut#stage=prefetch,records=1#");
  EXPECT_LT(puts[0].start_time, waiting);
  EXPECT_GT(puts[0].end_time, waiting);
}

TEST(TraceTest, EveryCallSaysHowManyRecordsItFound) {
  StageSession session(/*capacity=*/3);
  Trace trace(tsl::profiler::TraceMeLevel::kInfo);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(session.Put(i), OkStatus());
  std::vector<std::string> names;
  for (const auto& event : trace.Stop("TensorBufferPut")) {
    names.push_back(event.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, ElementsAre("TensorBufferPut#stage=prefetch,records=0#",
                                 "TensorBufferPut#stage=prefetch,records=1#",
                                 "TensorBufferPut#stage=prefetch,records=2#"));
}

TEST(TraceTest, AProfilerThatAsksForLessSeesNone) {
  StageSession session(/*capacity=*/1);
  Trace trace(tsl::profiler::TraceMeLevel::kCritical);
  EXPECT_EQ(session.Put(1), OkStatus());
  EXPECT_TRUE(trace.Stop("TensorBufferPut").empty());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
