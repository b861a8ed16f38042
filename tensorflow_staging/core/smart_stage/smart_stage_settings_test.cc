// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/protobuf/error_codes.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConfigProto ConfigWith(
    const std::function<void(SmartStageOptions*)>& set_options,
    bool do_smart_stage = true) {
  OptimizerFields fields;
  fields.set_do_smart_stage(do_smart_stage);
  set_options(fields.mutable_smart_stage_options());
  ConfigProto config;
  EXPECT_TRUE(config.mutable_graph_options()
                  ->mutable_optimizer_options()
                  ->MergeFromString(fields.SerializeAsString()));
  return config;
}

void NoOptions(SmartStageOptions*) {}

void AddPools(int count, ConfigProto* config) {
  ConfigFields fields;
  for (int i = 0; i < count; ++i)
    fields.add_session_stage_subgraph_thread_pool();
  EXPECT_TRUE(config->MergeFromString(fields.SerializeAsString()));
}

std::function<void(SmartStageOptions*)> UsePool(int id) {
  return [id](SmartStageOptions* options) {
    RunFields run;
    run.set_use_stage_subgraph_thread_pool(true);
    run.set_stage_subgraph_thread_pool_id(id);
    EXPECT_TRUE(options->mutable_runner_options()
                    ->mutable_run_options()
                    ->MergeFromString(run.SerializeAsString()));
  };
}

std::function<void(SmartStageOptions*)> UseStream(int id) {
  return [id](SmartStageOptions* options) {
    options->set_stage_subgraph_stream_id(id);
  };
}

void AddStreams(RewriterConfig::Toggle use, int count, ConfigProto* config) {
  RewriterFields fields;
  fields.set_use_multi_stream(use);
  fields.mutable_multi_stream_opts()->set_multi_stream_num(count);
  EXPECT_TRUE(config->mutable_graph_options()
                  ->mutable_rewrite_options()
                  ->MergeFromString(fields.SerializeAsString()));
}

// Expects that `config` is rejected with an error message that contains `text`.
void ExpectRejected(const ConfigProto& config, const std::string& text) {
  const Status status = CheckSmartStageSettings(config);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << text << ": " << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(SmartStageSettingsTest, SmartStageIsOffByDefault) {
  SmartStageSettings settings;
  settings.enabled = true;
  ASSERT_EQ(ReadSmartStageSettings(ConfigProto(), &settings), OkStatus());
  EXPECT_FALSE(settings.enabled);
}

TEST(SmartStageSettingsTest, DefaultsAreThoseOfTheDocumentation) {
  SmartStageSettings settings;
  ASSERT_EQ(ReadSmartStageSettings(ConfigWith(NoOptions), &settings),
            OkStatus());
  EXPECT_TRUE(settings.enabled);
  EXPECT_EQ(settings.name, "");
  EXPECT_EQ(settings.buffer.capacity, kAutotune);
  EXPECT_EQ(settings.num_threads, 1);
  EXPECT_EQ(settings.buffer.timeout_millis, 300000);
  EXPECT_EQ(settings.buffer.stream_id, 0);
  EXPECT_THAT(settings.runner.closed_exceptions(),
              ElementsAre(error::OUT_OF_RANGE));
  EXPECT_THAT(settings.runner.ignored_exceptions(), ElementsAre());
}

TEST(SmartStageSettingsTest, AProgramNeedNotSayWhetherStagesRunOnTheCpu) {
  for (const std::optional<bool> said :
       std::vector<std::optional<bool>>{std::nullopt, true, false}) {
    OptimizerFields fields;
    if (said.has_value()) fields.set_stage_subgraph_on_cpu(*said);
    ConfigProto config;
    ASSERT_TRUE(config.mutable_graph_options()
                    ->mutable_optimizer_options()
                    ->MergeFromString(fields.SerializeAsString()));
    SmartStageSettings settings;
    ASSERT_EQ(ReadSmartStageSettings(config, &settings), OkStatus());
    EXPECT_EQ(settings.on_cpu, said);
  }
}

TEST(SmartStageSettingsTest, FieldsThatAreSetReplaceDefaults) {
  ConfigProto config = ConfigWith([](SmartStageOptions* options) {
    options->set_name("ahead");
    options->set_capacity(40);
    options->set_num_threads(4);
    options->set_timeout_millis(1000);
    options->set_stage_subgraph_stream_id(1);
    options->mutable_runner_options()->add_closed_exceptions(error::NOT_FOUND);
    options->mutable_runner_options()->add_ignored_exceptions(error::DATA_LOSS);
  });
  AddStreams(RewriterConfig::ON, 2, &config);
  SmartStageSettings settings;
  ASSERT_EQ(ReadSmartStageSettings(config, &settings), OkStatus());
  EXPECT_EQ(settings.name, "ahead");
  EXPECT_EQ(settings.buffer.capacity, 40);
  EXPECT_EQ(settings.num_threads, 4);
  EXPECT_EQ(settings.buffer.timeout_millis, 1000);
  EXPECT_EQ(settings.buffer.stream_id, 1);
  EXPECT_THAT(settings.runner.closed_exceptions(),
              ElementsAre(error::NOT_FOUND));
  EXPECT_THAT(settings.runner.ignored_exceptions(),
              ElementsAre(error::DATA_LOSS));
}

TEST(SmartStageSettingsTest, AStageMayChooseCapacityAndThreads) {
  const ConfigProto config = ConfigWith([](SmartStageOptions* options) {
    options->set_capacity(-1);
    options->set_capacity_bytes(int64_t{1} << 40);
    options->set_device_capacity_bytes(int64_t{1} << 41);
    options->set_num_threads(-1);
  });
  SmartStageSettings settings;
  ASSERT_EQ(ReadSmartStageSettings(config, &settings), OkStatus());
  EXPECT_EQ(settings.buffer.capacity, kAutotune);
  EXPECT_EQ(settings.buffer.capacity_bytes, int64_t{1} << 40);
  EXPECT_EQ(settings.buffer.device_capacity_bytes, int64_t{1} << 41);
  EXPECT_EQ(settings.num_threads, 1);
  EXPECT_TRUE(settings.tune_threads);
}

TEST(SmartStageSettingsTest, NegativeNumbersAreRejected) {
  ExpectRejected(
      ConfigWith([](SmartStageOptions* options) { options->set_capacity(-2); }),
      "smart_stage_options.capacity is -2; it must be at least 1, 0 for the "
      "default, or -1 (tf.data.AUTOTUNE) to let the stage choose.");
  ExpectRejected(ConfigWith([](SmartStageOptions* options) {
                   options->set_num_threads(-2);
                 }),
                 "smart_stage_options.num_threads is -2; it must be at least");
  ExpectRejected(ConfigWith([](SmartStageOptions* options) {
                   options->set_capacity_bytes(-1);
                 }),
                 "smart_stage_options.capacity_bytes is -1; it must not be "
                 "negative");
  const auto expect_rejected = [](void (SmartStageOptions::*set)(int32_t),
                                  const std::string& field) {
    ExpectRejected(
        ConfigWith([set](SmartStageOptions* options) { (options->*set)(-3); }),
        "smart_stage_options." + field +
            " is -3; it must not be negative (0 means the default).");
  };
  expect_rejected(&SmartStageOptions::set_num_clients, "num_clients");
  expect_rejected(&SmartStageOptions::set_timeout_millis, "timeout_millis");
  expect_rejected(&SmartStageOptions::set_stage_subgraph_stream_id,
                  "stage_subgraph_stream_id");
}

TEST(SmartStageSettingsTest, MoreThreadsThanAMachineCanHaveAreRejected) {
  ExpectRejected(ConfigWith([](SmartStageOptions* options) {
                   options->set_num_threads(4097);
                 }),
                 "smart_stage_options.num_threads is 4097; it must be at most "
                 "4096.");
}

TEST(SmartStageSettingsTest, TheNameMustBeANameScope) {
  const auto named = [](const std::string& name) {
    return ConfigWith(
        [name](SmartStageOptions* options) { options->set_name(name); });
  };
  for (const char* name : {"my stage", "_stage", "stage/", "a:b", "/"}) {
    ExpectRejected(named(name),
                   absl::StrCat("smart_stage_options.name is '", name, "'"));
  }
  for (const char* name : {"prefetch_1", "model/input", ".a-b>c\\d", "1"}) {
    EXPECT_EQ(CheckSmartStageSettings(named(name)), OkStatus()) << name;
  }
}

TEST(SmartStageSettingsTest, TheThreadPoolMustExistInTheSession) {
  ConfigProto config = ConfigWith(UsePool(0));
  ExpectRejected(config,
                 "use_stage_subgraph_thread_pool, but the session has "
                 "no such pool");
  AddPools(1, &config);
  EXPECT_EQ(CheckSmartStageSettings(config), OkStatus());

  config = ConfigWith(UsePool(2));
  AddPools(2, &config);
  ExpectRejected(config,
                 "stage_subgraph_thread_pool_id 2; it must be from 0 to 1");
  config = ConfigWith(UsePool(-1));
  AddPools(2, &config);
  ExpectRejected(config,
                 "stage_subgraph_thread_pool_id -1; it must be from 0 to 1");
}

TEST(SmartStageSettingsTest, TheStreamMustExistInTheSession) {
  ConfigProto config = ConfigWith(UseStream(1));
  ExpectRejected(config,
                 "stage_subgraph_stream_id is 1; it must be from 0 to "
                 "0, as the session has 1 GPU stream(s)");
  AddStreams(RewriterConfig::OFF, 4, &config);
  ExpectRejected(config, "the session has 1 GPU stream(s)");
  AddStreams(RewriterConfig::ON, 4, &config);
  EXPECT_EQ(CheckSmartStageSettings(config), OkStatus());
  AddStreams(RewriterConfig::ON, 1, &config);
  ExpectRejected(config, "must be from 0 to 0");
}

TEST(SmartStageSettingsTest, DisabledSettingsAreNotChecked) {
  ConfigProto config =
      ConfigWith([](SmartStageOptions* options) { options->set_capacity(-2); },
                 /*do_smart_stage=*/false);
  EXPECT_EQ(CheckSmartStageSettings(config), OkStatus());
}

ConfigProto ConfigWithLookups(
    const std::function<void(AsyncEmbeddingOptions*)>& set_options) {
  OptimizerFields fields;
  fields.set_do_async_embedding(true);
  AsyncEmbeddingOptions* options = fields.mutable_async_embedding_options();
  options->set_capacity(2);
  options->set_threads_num(3);
  set_options(options);
  ConfigProto config;
  EXPECT_TRUE(config.mutable_graph_options()
                  ->mutable_optimizer_options()
                  ->MergeFromString(fields.SerializeAsString()));
  return config;
}

TEST(SmartStageSettingsTest, LookupsHaveSettingsOfTheirOwn) {
  SmartStageSettings settings;
  ASSERT_EQ(ReadSmartStageSettings(
                ConfigWithLookups([](AsyncEmbeddingOptions*) {}), &settings),
            OkStatus());
  EXPECT_FALSE(settings.enabled);
  EXPECT_TRUE(settings.finds_stages());
  const SmartStageSettings lookups = SettingsOfLookups(settings);
  EXPECT_TRUE(lookups.enabled);
  EXPECT_EQ(lookups.name, "async_embedding");
  EXPECT_EQ(lookups.buffer.capacity, 2);
  EXPECT_EQ(lookups.num_threads, 3);
  EXPECT_THAT(lookups.runner.closed_exceptions(),
              ElementsAre(error::OUT_OF_RANGE));
  RunFields run;
  ASSERT_EQ(DecodeRunFields(lookups.runner.run_options(), &run), OkStatus());
  EXPECT_FALSE(run.use_stage_subgraph_thread_pool());
}

TEST(SmartStageSettingsTest, LookupsUseTheChosenThreadPool) {
  ConfigProto config = ConfigWithLookups([](AsyncEmbeddingOptions* options) {
    options->set_use_stage_subgraph_thread_pool(true);
    options->set_stage_subgraph_thread_pool_id(1);
  });
  ExpectRejected(config,
                 "async_embedding_options sets use_stage_subgraph_thread_pool, "
                 "but the session has no such pool");
  AddPools(2, &config);
  SmartStageSettings settings;
  ASSERT_EQ(ReadSmartStageSettings(config, &settings), OkStatus());
  RunFields run;
  ASSERT_EQ(
      DecodeRunFields(SettingsOfLookups(settings).runner.run_options(), &run),
      OkStatus());
  EXPECT_TRUE(run.use_stage_subgraph_thread_pool());
  EXPECT_EQ(run.stage_subgraph_thread_pool_id(), 1);
}

TEST(SmartStageSettingsTest, TheNumbersOfLookupsMustBeSet) {
  for (const int wrong : {0, -1}) {
    ExpectRejected(ConfigWithLookups([wrong](AsyncEmbeddingOptions* options) {
                     options->set_capacity(wrong);
                   }),
                   absl::StrCat("async_embedding_options.capacity is ", wrong,
                                " and threads_num is "));
    ExpectRejected(
        ConfigWithLookups([wrong](AsyncEmbeddingOptions* options) {
          options->set_threads_num(wrong);
        }),
        absl::StrCat(" and threads_num is ", wrong,
                     "; with do_async_embedding both must be set, to at least "
                     "1"));
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
