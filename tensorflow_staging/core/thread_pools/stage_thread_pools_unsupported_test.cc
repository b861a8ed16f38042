// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools_unsupported.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::StartsWith;

TEST(StageThreadPoolsUnsupportedTest, OptionsWithoutPoolsPass) {
  SessionOptions options;
  options.target = "grpc://localhost:1";
  EXPECT_EQ(CheckNoStageThreadPools(options), OkStatus());
  EXPECT_EQ(CheckNoStageThreadPool(RunOptions()), OkStatus());
}

TEST(StageThreadPoolsUnsupportedTest, PoolsOfASessionAreRefused) {
  ConfigFields fields;
  fields.add_session_stage_subgraph_thread_pool();
  fields.add_session_stage_subgraph_thread_pool();
  SessionOptions options;
  options.target = "grpc://localhost:1";
  ASSERT_TRUE(options.config.MergeFromString(fields.SerializeAsString()));
  const Status status = CheckNoStageThreadPools(options);
  EXPECT_TRUE(errors::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("ConfigProto.session_stage_subgraph_thread_pool has 2 "
                         "entries, but the target of the session is "
                         "grpc://localhost:1: stage thread pools are not "
                         "supported"));
}

TEST(StageThreadPoolsUnsupportedTest, PoolOfARunIsRefused) {
  RunFields fields;
  fields.set_use_stage_subgraph_thread_pool(true);
  fields.set_stage_subgraph_thread_pool_id(3);
  RunOptions options;
  ASSERT_TRUE(options.MergeFromString(fields.SerializeAsString()));
  const Status status = CheckNoStageThreadPool(options);
  EXPECT_TRUE(errors::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("The run asks for stage thread pool 3, but stage "
                         "thread pools are not supported in distributed"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
