// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;

ConfigProto ConfigWith(RewriterConfig::Toggle use, int count,
                       MultiStreamPartitionPolicy policy =
                           MultiStreamPartitionPolicy::NO_PARTITION) {
  RewriterFields fields;
  fields.set_use_multi_stream(use);
  fields.mutable_multi_stream_opts()->set_multi_stream_num(count);
  fields.mutable_multi_stream_opts()->set_partition_policy(policy);
  ConfigProto config;
  EXPECT_TRUE(config.mutable_graph_options()
                  ->mutable_rewrite_options()
                  ->MergeFromString(fields.SerializeAsString()));
  return config;
}

TEST(StreamSettingsTest, ASessionHasOneStreamUnlessItAsksForMore) {
  StreamSettings settings;
  EXPECT_EQ(ReadStreamSettings(ConfigProto(), &settings), OkStatus());
  EXPECT_FALSE(settings.enabled);
  EXPECT_EQ(settings.streams, 1);
  EXPECT_FALSE(settings.stages);
  for (const auto use : {RewriterConfig::DEFAULT, RewriterConfig::OFF}) {
    // What is off is not checked.
    for (const int count : {4, -1}) {
      settings.streams = 0;
      EXPECT_EQ(ReadStreamSettings(ConfigWith(use, count), &settings),
                OkStatus());
      EXPECT_FALSE(settings.enabled);
      EXPECT_EQ(settings.streams, 1);
    }
  }
  for (const int count : {1, 2, kMaxStreams}) {
    EXPECT_EQ(
        ReadStreamSettings(ConfigWith(RewriterConfig::ON, count), &settings),
        OkStatus());
    EXPECT_TRUE(settings.enabled);
    EXPECT_EQ(settings.streams, count);
  }
}

TEST(StreamSettingsTest, StagesHaveASettingOfTheirOwn) {
  OptimizerFields fields;
  fields.set_stage_multi_stream(true);
  ConfigProto config;
  ASSERT_TRUE(config.mutable_graph_options()
                  ->mutable_optimizer_options()
                  ->MergeFromString(fields.SerializeAsString()));
  StreamSettings settings;
  EXPECT_EQ(ReadStreamSettings(config, &settings), OkStatus());
  EXPECT_TRUE(settings.stages);
  EXPECT_FALSE(settings.enabled);
}

TEST(StreamSettingsTest, TheNumberOfStreamsHasLimits) {
  for (const int count : {-2, 0, kMaxStreams + 1}) {
    StreamSettings settings;
    const Status status =
        ReadStreamSettings(ConfigWith(RewriterConfig::ON, count), &settings);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("multi_stream_num is " + std::to_string(count) +
                          "; with use_multi_stream ON, it must be from 1 to "
                          "64"));
  }
}

Status ReadPolicy(int policy) {
  StreamSettings settings;
  return ReadStreamSettings(
      ConfigWith(RewriterConfig::ON, 2,
                 static_cast<MultiStreamPartitionPolicy>(policy)),
      &settings);
}

TEST(StreamSettingsTest, ProgramsChooseTheStreamsWithBothPolicies) {
  EXPECT_EQ(ReadPolicy(NO_PARTITION), OkStatus());
  EXPECT_EQ(ReadPolicy(USER_DEFINED_PARTITION), OkStatus());
}

TEST(StreamSettingsTest, PoliciesThatAreNotImplementedAreRefused) {
  const auto message = [](int policy) {
    const Status status = ReadPolicy(policy);
    EXPECT_TRUE(errors::IsUnimplemented(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message(EMBEDDING_GRAPH_PARTITION),
              HasSubstr("partition_policy is EMBEDDING_GRAPH_PARTITION; only "
                        "NO_PARTITION, the default, and USER_DEFINED"));
  EXPECT_THAT(message(FULL_GRAPH_PARTITION), HasSubstr("FULL_GRAPH_PARTITION"));
  EXPECT_THAT(message(17), HasSubstr("partition_policy is 17;"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
