// SPDX-License-Identifier: Apache-2.0
//
// A user's graph pass, built against the wheel's headers. It reads the new
// fields of the session's configuration and keeps their values for the test.

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace {

using tensorflow::Status;
using tensorflow::staging::ConfigFields;
using tensorflow::staging::OptimizerFields;
using tensorflow::staging::PrefetchRunnerOptions;
using tensorflow::staging::RewriterFields;
using tensorflow::staging::RunFields;
using tensorflow::staging::SmartStageOptions;

// The fields that the last run of the pass read, one line `name=value` each.
std::string& Lines() {
  static auto* lines = new std::string;
  return *lines;
}

template <typename Value>
void Line(const std::string& name, const Value& value) {
  absl::StrAppend(&Lines(), name, "=", value, "\n");
}

template <typename Values>
void LinePerEntry(const std::string& name, const Values& values) {
  int index = 0;
  for (const auto& value : values)
    Line(absl::StrCat(name, ".", index++), value);
}

Status WriteConfig(const tensorflow::ConfigProto& config) {
  ConfigFields fields;
  TF_RETURN_IF_ERROR(tensorflow::staging::DecodeConfigFields(config, &fields));
  int index = 0;
  for (const auto& pool : fields.session_stage_subgraph_thread_pool()) {
    const std::string name = absl::StrCat("pool.", index++, ".");
    Line(name + "inter_op_threads_num", pool.inter_op_threads_num());
    Line(name + "intra_op_threads_num", pool.intra_op_threads_num());
    Line(name + "global_name", pool.global_name());
    LinePerEntry(name + "cpu_affinity", pool.cpu_affinity());
  }
  return tensorflow::OkStatus();
}

Status WriteRunner(const PrefetchRunnerOptions& runner) {
  RunFields run;
  TF_RETURN_IF_ERROR(
      tensorflow::staging::DecodeRunFields(runner.run_options(), &run));
  Line("runner.use_stage_subgraph_thread_pool",
       run.use_stage_subgraph_thread_pool());
  Line("runner.stage_subgraph_thread_pool_id",
       run.stage_subgraph_thread_pool_id());
  LinePerEntry("runner.fetch_ops", runner.fetch_ops());
  Line("runner.cancel_op", runner.cancel_op());
  Line("runner.resume_op", runner.resume_op());
  Line("runner.close_op", runner.close_op());
  for (const auto& feed : runner.named_feed_input_tensors()) {
    Line("runner.feed." + feed.first, feed.second);
  }
  LinePerEntry("runner.closed_exceptions", runner.closed_exceptions());
  LinePerEntry("runner.ignored_exceptions", runner.ignored_exceptions());
  Line("runner.name", runner.name());
  Line("runner.error_code_tensor", runner.error_code_tensor());
  Line("runner.error_message_tensor", runner.error_message_tensor());
  Line("runner.discard_tensor", runner.discard_tensor());
  Line("runner.stats_tensor", runner.stats_tensor());
  Line("runner.tune_threads", runner.tune_threads());
  Line("runner.any_order", runner.any_order());
  return tensorflow::OkStatus();
}

Status WriteOptimizer(const tensorflow::OptimizerOptions& options) {
  OptimizerFields fields;
  TF_RETURN_IF_ERROR(
      tensorflow::staging::DecodeOptimizerFields(options, &fields));
  Line("do_smart_stage", fields.do_smart_stage());
  Line("stage_subgraph_on_cpu", fields.stage_subgraph_on_cpu());
  Line("stage_multi_stream", fields.stage_multi_stream());
  const SmartStageOptions& smart = fields.smart_stage_options();
  Line("smart_stage.capacity", smart.capacity());
  Line("smart_stage.num_threads", smart.num_threads());
  Line("smart_stage.num_clients", smart.num_clients());
  Line("smart_stage.timeout_millis", smart.timeout_millis());
  Line("smart_stage.stage_subgraph_stream_id",
       smart.stage_subgraph_stream_id());
  Line("smart_stage.graph_key", smart.graph_key());
  Line("smart_stage.name", smart.name());
  Line("smart_stage.omit_elements", smart.omit_elements());
  Line("smart_stage.capacity_bytes", smart.capacity_bytes());
  Line("smart_stage.device_capacity_bytes", smart.device_capacity_bytes());
  TF_RETURN_IF_ERROR(WriteRunner(smart.runner_options()));
  Line("do_smart_stage_gpu", fields.do_smart_stage_gpu());
  Line("do_async_embedding", fields.do_async_embedding());
  const auto& lookups = fields.async_embedding_options();
  Line("async_embedding.threads_num", lookups.threads_num());
  Line("async_embedding.capacity", lookups.capacity());
  Line("async_embedding.use_stage_subgraph_thread_pool",
       lookups.use_stage_subgraph_thread_pool());
  Line("async_embedding.stage_subgraph_thread_pool_id",
       lookups.stage_subgraph_thread_pool_id());
  return tensorflow::OkStatus();
}

Status WriteRewriter(const tensorflow::RewriterConfig& config) {
  RewriterFields fields;
  TF_RETURN_IF_ERROR(
      tensorflow::staging::DecodeRewriterFields(config, &fields));
  Line("use_multi_stream", static_cast<int>(fields.use_multi_stream()));
  Line("multi_stream.multi_stream_num",
       fields.multi_stream_opts().multi_stream_num());
  Line("multi_stream.partition_policy",
       static_cast<int>(fields.multi_stream_opts().partition_policy()));
  LinePerEntry("multi_stream.memory_shares",
               fields.multi_stream_opts().memory_shares());
  return tensorflow::OkStatus();
}

class ReadFieldsPass : public tensorflow::GraphOptimizationPass {
 public:
  Status Run(const tensorflow::GraphOptimizationPassOptions& options) override {
    const tensorflow::ConfigProto& config = options.session_options->config;
    Lines().clear();
    TF_RETURN_IF_ERROR(WriteConfig(config));
    TF_RETURN_IF_ERROR(
        WriteOptimizer(config.graph_options().optimizer_options()));
    return WriteRewriter(config.graph_options().rewrite_options());
  }
};

// Any phase would do, because the pass does not change the graph.
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::PRE_PLACEMENT, 0,
                      ReadFieldsPass);

}  // namespace

extern "C" const char* FieldsRead() { return Lines().c_str(); }
