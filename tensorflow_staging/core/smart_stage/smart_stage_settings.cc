// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/protobuf/error_codes.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/streams/stream_settings.h"

namespace tensorflow {
namespace staging {
namespace {

Status CheckNumThreads(const char* field, int num_threads) {
  if (num_threads <= kMaxThreads) return OkStatus();
  return errors::InvalidArgument(field, " is ", num_threads,
                                 "; it must be at most ", kMaxThreads, ".");
}

using Field = std::pair<const char*, int64_t>;

// Checks that some fields of the message `options` are at least `least`, and
// tells `rule` otherwise.
Status CheckAtLeast(int64_t least, const char* options,
                    std::initializer_list<Field> fields, const char* rule) {
  for (const auto& [field, value] : fields) {
    if (value >= least) continue;
    return errors::InvalidArgument(options, ".", field, " is ", value, "; ",
                                   rule);
  }
  return OkStatus();
}

// Node names will begin with `name`, so it must be a valid name scope.
Status CheckName(const std::string& name) {
  const auto may_begin = [](char c) {
    return absl::ascii_isalnum(c) || c == '.';
  };
  const auto may_follow = [&](char c) {
    return may_begin(c) ||
           absl::string_view("_/\\>-").find(c) != absl::string_view::npos;
  };
  if (name.empty() || (may_begin(name.front()) && name.back() != '/' &&
                       absl::c_all_of(name, may_follow))) {
    return OkStatus();
  }
  return errors::InvalidArgument(
      "smart_stage_options.name is '", name,
      "'; it must be a name scope: a letter, digit or '.', followed by "
      "letters, digits and any of . _ / \\ > -, and it must not end with '/'.");
}

// Checks the thread pool that the options `name` choose.
Status CheckThreadPool(const char* name, const RunFields& run,
                       const ConfigProto& config) {
  if (!run.use_stage_subgraph_thread_pool()) return OkStatus();
  ConfigFields fields;
  TF_RETURN_IF_ERROR(DecodeConfigFields(config, &fields));
  const int pools = fields.session_stage_subgraph_thread_pool_size();
  const int id = run.stage_subgraph_thread_pool_id();
  if (pools == 0) {
    return errors::InvalidArgument(
        name,
        " sets use_stage_subgraph_thread_pool, but the "
        "session has no such pool: add one to "
        "ConfigProto.session_stage_subgraph_thread_pool.");
  }
  if (id < 0 || id >= pools) {
    return errors::InvalidArgument(
        name, " sets stage_subgraph_thread_pool_id ", id,
        "; it must be from 0 to ", pools - 1,
        ", an index into ConfigProto.session_stage_subgraph_thread_pool.");
  }
  return OkStatus();
}

Status CheckStream(const SmartStageOptions& options,
                   const ConfigProto& config) {
  StreamSettings settings;
  TF_RETURN_IF_ERROR(ReadStreamSettings(config, &settings));
  const int streams = settings.streams;
  if (options.stage_subgraph_stream_id() >= streams) {
    return errors::InvalidArgument(
        "smart_stage_options.stage_subgraph_stream_id is ",
        options.stage_subgraph_stream_id(), "; it must be from 0 to ",
        streams - 1, ", as the session has ", streams,
        " GPU stream(s): see RewriterConfig.use_multi_stream and "
        "multi_stream_opts.multi_stream_num.");
  }
  return OkStatus();
}

// Whether several producers make records in the order of one.
bool MakesRecordsInOrder(const SmartStageSettings& settings) {
  return (settings.tune_threads || settings.num_threads > 1) &&
         !settings.runner.any_order();
}

// Reads the settings of SmartStage itself.
Status ReadSmartStage(const SmartStageOptions& options,
                      const ConfigProto& config, SmartStageSettings* settings) {
  constexpr char kOptions[] = "smart_stage_options";
  TF_RETURN_IF_ERROR(CheckAtLeast(
      kAutotune, kOptions,
      {{"capacity", options.capacity()},
       {"num_threads", options.num_threads()}},
      "it must be at least 1, 0 for the default, or -1 (tf.data.AUTOTUNE) to "
      "let the stage choose."));
  TF_RETURN_IF_ERROR(CheckNumThreads("smart_stage_options.num_threads",
                                     options.num_threads()));
  TF_RETURN_IF_ERROR(CheckAtLeast(
      0, kOptions,
      {{"capacity_bytes", options.capacity_bytes()},
       {"device_capacity_bytes", options.device_capacity_bytes()},
       {"num_clients", options.num_clients()},
       {"timeout_millis", options.timeout_millis()},
       {"stage_subgraph_stream_id", options.stage_subgraph_stream_id()}},
      "it must not be negative (0 means the default)."));
  TF_RETURN_IF_ERROR(CheckName(options.name()));
  RunFields run;
  TF_RETURN_IF_ERROR(
      DecodeRunFields(options.runner_options().run_options(), &run));
  TF_RETURN_IF_ERROR(CheckThreadPool(kOptions, run, config));
  TF_RETURN_IF_ERROR(CheckStream(options, config));
  settings->enabled = true;
  settings->name = options.name();
  if (options.capacity() != 0) settings->buffer.capacity = options.capacity();
  settings->buffer.capacity_bytes = options.capacity_bytes();
  settings->buffer.device_capacity_bytes = options.device_capacity_bytes();
  if (options.num_threads() > 0) settings->num_threads = options.num_threads();
  settings->tune_threads = options.num_threads() == kAutotune;
  if (options.timeout_millis() > 0) {
    settings->buffer.timeout_millis = options.timeout_millis();
  }
  settings->buffer.stream_id = options.stage_subgraph_stream_id();
  if (options.omit_elements()) settings->content = RecordContent::kBoundaryOnly;
  settings->runner = options.runner_options();
  if (!options.has_runner_options()) {
    settings->runner.add_closed_exceptions(error::OUT_OF_RANGE);
  }
  settings->buffer.is_ordered = MakesRecordsInOrder(*settings);
  return OkStatus();
}

Status ReadAsyncEmbedding(const AsyncEmbeddingOptions& options,
                          const ConfigProto& config,
                          AsyncEmbeddingSettings* settings) {
  if (options.capacity() < 1 || options.threads_num() < 1) {
    return errors::InvalidArgument(
        "async_embedding_options.capacity is ", options.capacity(),
        " and threads_num is ", options.threads_num(),
        "; with do_async_embedding both must be set, to at least 1. A lookup "
        "may miss the updates of capacity + threads_num steps, so there is no "
        "default.");
  }
  TF_RETURN_IF_ERROR(CheckNumThreads("async_embedding_options.threads_num",
                                     options.threads_num()));
  RunFields run;
  run.set_use_stage_subgraph_thread_pool(
      options.use_stage_subgraph_thread_pool());
  run.set_stage_subgraph_thread_pool_id(
      options.stage_subgraph_thread_pool_id());
  TF_RETURN_IF_ERROR(CheckThreadPool("async_embedding_options", run, config));
  settings->enabled = true;
  settings->capacity = options.capacity();
  settings->num_threads = options.threads_num();
  settings->runner.add_closed_exceptions(error::OUT_OF_RANGE);
  if (!settings->runner.mutable_run_options()->ParseFromString(
          run.SerializeAsString())) {
    return errors::Internal("RunOptions do not accept the new fields.");
  }
  return OkStatus();
}

}  // namespace

Status ReadSmartStageSettings(const ConfigProto& config,
                              SmartStageSettings* settings) {
  *settings = SmartStageSettings();
  OptimizerFields fields;
  TF_RETURN_IF_ERROR(DecodeOptimizerFields(
      config.graph_options().optimizer_options(), &fields));
  if (fields.has_stage_subgraph_on_cpu()) {
    settings->on_cpu = fields.stage_subgraph_on_cpu();
  }
  if (fields.do_smart_stage()) {
    TF_RETURN_IF_ERROR(
        ReadSmartStage(fields.smart_stage_options(), config, settings));
  }
  if (fields.do_async_embedding()) {
    TF_RETURN_IF_ERROR(ReadAsyncEmbedding(fields.async_embedding_options(),
                                          config, &settings->async_embedding));
  }
  return OkStatus();
}

SmartStageSettings SettingsOfLookups(const SmartStageSettings& settings) {
  SmartStageSettings lookups;
  lookups.enabled = true;
  lookups.name = kAsyncEmbeddingStageName;
  lookups.buffer.capacity = settings.async_embedding.capacity;
  lookups.num_threads = settings.async_embedding.num_threads;
  lookups.runner = settings.async_embedding.runner;
  lookups.buffer.is_ordered = MakesRecordsInOrder(lookups);
  return lookups;
}

Status CheckSmartStageSettings(const ConfigProto& config) {
  SmartStageSettings settings;
  return ReadSmartStageSettings(config, &settings);
}

}  // namespace staging
}  // namespace tensorflow
