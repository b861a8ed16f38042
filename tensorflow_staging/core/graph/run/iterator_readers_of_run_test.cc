// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/iterator_readers_of_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/testing/test_graph.h"
#include "tensorflow_staging/core/testing/warnings.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SharedIteratorsTest, ARunWithoutMarksPasses) {
  TestGraph graph;
  graph.Target("target", {graph.Source("next")});
  Warnings warnings("string handle");
  EXPECT_EQ(CheckNoSourceReadsBeside(*graph.get()), OkStatus());
  WarnOfStringHandles(*graph.get());
  EXPECT_THAT(warnings.Texts(), IsEmpty());
}

TEST(SharedIteratorsTest, ASourceThatReadsBesideFailsTheRun) {
  TestGraph graph;
  MarkReadsBeside("why it fails", graph.Source("next"));
  const Status status = CheckNoSourceReadsBeside(*graph.get());
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(), "why it fails");
}

TEST(SharedIteratorsTest, WhatIsFedToAStageIsNotDrawnAgainForItsRecord) {
  TestGraph graph;
  MarkReadForFeeds(graph.Source("next"));
  EXPECT_EQ(CheckFeedsAreNotDrawnAgain(*graph.get()), OkStatus());
  graph.Take("other");
  EXPECT_EQ(CheckFeedsAreNotDrawnAgain(*graph.get()), OkStatus());
  MarkHasFeeds(graph.Take("stage"));
  const Status status = CheckFeedsAreNotDrawnAgain(*graph.get());
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("'stage/TensorBufferTake'"), HasSubstr("'next'")));
}

TEST(SharedIteratorsTest, AStringHandleIsWarnedOf) {
  TestGraph graph;
  MarkReadAhead("stage", graph.Lone("to_string", "IteratorToStringHandle"));
  Warnings warnings("string handle");
  WarnOfStringHandles(*graph.get());
  EXPECT_THAT(warnings.Texts(), ElementsAre(AllOf(HasSubstr("'to_string'"),
                                                  HasSubstr("stage 'stage'"))));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
