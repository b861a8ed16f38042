// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/protobuf.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;

// Returns a TensorFlow message as it arrives from Python: its C++ class does
// not declare the fields in `bytes`.
template <typename Message>
Message WithBytes(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.MergeFromString(bytes));
  return message;
}

template <typename Message, typename Fields>
Message With(const Fields& fields) {
  return WithBytes<Message>(fields.SerializeAsString());
}

// Returns the bytes of a field of wire type 2, length-delimited.
std::string LengthDelimited(int field_number, const std::string& contents) {
  protobuf::UnknownFieldSet fields;
  fields.AddLengthDelimited(field_number, contents);
  std::string bytes;
  EXPECT_TRUE(fields.SerializeToString(&bytes));
  return bytes;
}

// Returns whether upstream uses no number of `Fields` for a field of its own.
template <typename Message, typename Fields>
bool NumbersAreOurs() {
  const auto* view = Fields::descriptor();
  for (int i = 0; i < view->field_count(); ++i) {
    const auto* field =
        Message::descriptor()->FindFieldByNumber(view->field(i)->number());
    if (field != nullptr && field->name() != view->field(i)->name()) {
      return false;
    }
  }
  return true;
}

TEST(StagingFieldsDecoderTest, UpstreamUsesNoneOfTheNumbers) {
  EXPECT_TRUE((NumbersAreOurs<ConfigProto, ConfigFields>()));
  EXPECT_TRUE((NumbersAreOurs<OptimizerOptions, OptimizerFields>()));
  EXPECT_TRUE((NumbersAreOurs<RewriterConfig, RewriterFields>()));
  EXPECT_TRUE((NumbersAreOurs<RunOptions, RunFields>()));
  EXPECT_TRUE((NumbersAreOurs<ExecutorOpts, RunFields>()));
}

TEST(StagingFieldsDecoderTest, MessageWithoutTheFieldsGivesDefaults) {
  ConfigProto config;
  config.set_inter_op_parallelism_threads(3);
  ConfigFields fields;
  fields.add_session_stage_subgraph_thread_pool();
  EXPECT_EQ(DecodeConfigFields(config, &fields), OkStatus());
  EXPECT_EQ(fields.ByteSizeLong(), 0);
}

TEST(StagingFieldsDecoderTest, ReadsConfigFields) {
  ConfigFields expected;
  auto* pool = expected.add_session_stage_subgraph_thread_pool();
  pool->set_inter_op_threads_num(8);
  pool->set_intra_op_threads_num(4);
  pool->set_global_name("StageThreadPool_1");
  expected.add_session_stage_subgraph_thread_pool();
  ConfigFields fields;
  EXPECT_EQ(DecodeConfigFields(With<ConfigProto>(expected), &fields),
            OkStatus());
  EXPECT_EQ(fields.SerializeAsString(), expected.SerializeAsString());
}

TEST(StagingFieldsDecoderTest, ReadsRunFields) {
  RunFields expected;
  expected.set_use_stage_subgraph_thread_pool(true);
  expected.set_stage_subgraph_thread_pool_id(-7);
  RunFields fields;
  EXPECT_EQ(DecodeRunFields(With<RunOptions>(expected), &fields), OkStatus());
  EXPECT_EQ(fields.SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(DecodeRunFields(With<ExecutorOpts>(expected), &fields), OkStatus());
  EXPECT_EQ(fields.SerializeAsString(), expected.SerializeAsString());
}

TEST(StagingFieldsDecoderTest, ReadsOptimizerFieldsDownToTheRunOptions) {
  OptimizerFields expected;
  expected.set_do_smart_stage(true);
  expected.set_stage_subgraph_on_cpu(true);
  expected.set_stage_multi_stream(true);
  auto* options = expected.mutable_smart_stage_options();
  options->set_capacity(2);
  auto* runner = options->mutable_runner_options();
  runner->add_closed_exceptions(error::OUT_OF_RANGE);
  runner->add_ignored_exceptions(error::INVALID_ARGUMENT);
  (*runner->mutable_named_feed_input_tensors())["x:0"] = "y:0";
  RunFields run_fields;
  run_fields.set_use_stage_subgraph_thread_pool(true);
  *runner->mutable_run_options() = With<RunOptions>(run_fields);

  OptimizerFields fields;
  ASSERT_EQ(DecodeOptimizerFields(With<OptimizerOptions>(expected), &fields),
            OkStatus());
  EXPECT_EQ(fields.SerializeAsString(), expected.SerializeAsString());

  RunFields nested;
  ASSERT_EQ(
      DecodeRunFields(
          fields.smart_stage_options().runner_options().run_options(), &nested),
      OkStatus());
  EXPECT_TRUE(nested.use_stage_subgraph_thread_pool());
}

TEST(StagingFieldsDecoderTest, TheOlderNameForGpusStandsForTwoFields) {
  OptimizerFields sent;
  sent.set_do_smart_stage_gpu(true);
  OptimizerFields fields;
  ASSERT_EQ(DecodeOptimizerFields(With<OptimizerOptions>(sent), &fields),
            OkStatus());
  EXPECT_TRUE(fields.do_smart_stage());
  EXPECT_TRUE(fields.stage_subgraph_on_cpu());
}

TEST(StagingFieldsDecoderTest, ReadsFieldsOfANestedMessage) {
  RewriterFields expected;
  expected.set_use_multi_stream(RewriterConfig::ON);
  expected.mutable_multi_stream_opts()->set_multi_stream_num(2);
  expected.mutable_multi_stream_opts()->add_memory_shares(3);
  expected.mutable_multi_stream_opts()->add_memory_shares(1);
  expected.mutable_multi_stream_opts()->set_partition_policy(
      EMBEDDING_GRAPH_PARTITION);
  ConfigProto sent;
  *sent.mutable_graph_options()->mutable_rewrite_options() =
      With<RewriterConfig>(expected);

  const auto config = WithBytes<ConfigProto>(sent.SerializeAsString());
  RewriterFields fields;
  ASSERT_EQ(
      DecodeRewriterFields(config.graph_options().rewrite_options(), &fields),
      OkStatus());
  EXPECT_EQ(fields.SerializeAsString(), expected.SerializeAsString());
}

TEST(StagingFieldsDecoderTest, OmitsOtherUnknownFields) {
  const auto run_options =
      WithBytes<RunOptions>(LengthDelimited(20001, "of a later release"));
  RunFields fields;
  EXPECT_EQ(DecodeRunFields(run_options, &fields), OkStatus());
  EXPECT_EQ(fields.ByteSizeLong(), 0);
}

TEST(StagingFieldsDecoderTest, MalformedBytesAreRefused) {
  const auto config = WithBytes<ConfigProto>(
      LengthDelimited(10001, /*a cut-off field=*/"\x0a\x7f"));
  ConfigFields fields;
  fields.add_session_stage_subgraph_thread_pool();
  const Status status = DecodeConfigFields(config, &fields);
  EXPECT_TRUE(errors::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("The staging fields of tensorflow.ConfigProto are "
                        "malformed"));
  EXPECT_EQ(fields.ByteSizeLong(), 0);
}

TEST(StagingFieldsDecoderTest, FieldOfAnotherTypeIsRefused) {
  const auto run_options =
      WithBytes<RunOptions>(LengthDelimited(10001, "not a bool"));
  RunFields fields;
  const Status status = DecodeRunFields(run_options, &fields);
  EXPECT_TRUE(errors::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("The staging fields of tensorflow.RunOptions are "
                        "malformed"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
