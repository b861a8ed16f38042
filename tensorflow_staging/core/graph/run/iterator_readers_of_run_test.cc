// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/iterator_readers_of_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;

TEST(SharedIteratorsTest, ARunWithoutMarksPasses) {
  TestGraph graph;
  graph.Target("target", {graph.Source("next")});
  EXPECT_EQ(CheckNoSourceReadsBeside(*graph.get()), OkStatus());
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

}  // namespace
}  // namespace staging
}  // namespace tensorflow
