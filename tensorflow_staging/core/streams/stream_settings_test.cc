// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

ConfigProto ConfigWithShares(int count, const std::vector<float>& shares) {
  RewriterFields fields;
  fields.set_use_multi_stream(RewriterConfig::ON);
  fields.mutable_multi_stream_opts()->set_multi_stream_num(count);
  for (const float share : shares) {
    fields.mutable_multi_stream_opts()->add_memory_shares(share);
  }
  ConfigProto config;
  EXPECT_TRUE(config.mutable_graph_options()
                  ->mutable_rewrite_options()
                  ->MergeFromString(fields.SerializeAsString()));
  return config;
}

TEST(StreamSettingsTest, MemorySharesAreParts) {
  StreamSettings settings;
  EXPECT_EQ(ReadStreamSettings(ConfigWithShares(2, {3, 1}), &settings),
            OkStatus());
  EXPECT_THAT(settings.memory_shares, ElementsAre(0.75, 0.25));
  EXPECT_EQ(ReadStreamSettings(ConfigWithShares(2, {}), &settings), OkStatus());
  EXPECT_THAT(settings.memory_shares, IsEmpty());
}

TEST(StreamSettingsTest, WrongMemorySharesAreRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& shares : {std::vector<float>{1},
                                           {1, 1, 1},
                                           {1, 0},
                                           {2, -1},
                                           {1, infinity},
                                           {1, std::nanf("")}}) {
    StreamSettings settings;
    const Status status =
        ReadStreamSettings(ConfigWithShares(2, shares), &settings);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("memory_shares is [" + absl::StrJoin(shares, ", ") +
                          "]; it must be empty, or have a positive number for "
                          "each of the 2 streams"));
    EXPECT_FALSE(settings.enabled);
  }
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
