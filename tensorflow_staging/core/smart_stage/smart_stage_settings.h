// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_SMART_STAGE_SETTINGS_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_SMART_STAGE_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/buffer_settings.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/regions.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// How embedding lookups run ahead of the step.
struct AsyncEmbeddingSettings {
  bool enabled = false;
  int64_t capacity = 0;
  int num_threads = 0;
  // Without the names of nodes, which RunnersOfPlan adds.
  PrefetchRunnerOptions runner;
};

// The SmartStage settings of OptimizerOptions, with defaults for the fields
// that are not set.
struct SmartStageSettings {
  bool enabled = false;
  // Whether stages run on the CPU, if the program says so. Applies without
  // `enabled` too, to manual stages.
  std::optional<bool> on_cpu;
  // The preferred name of the stages; empty for the default.
  std::string name;
  BufferSettings buffer = {kAutotune};
  int num_threads = 1;
  bool tune_threads = false;
  RecordContent content = RecordContent::kElements;
  // Without the names of nodes, which RunnersOfPlan adds.
  PrefetchRunnerOptions runner;
  AsyncEmbeddingSettings async_embedding;

  // Whether the graph may get stages of which the program does not know.
  bool finds_stages() const { return enabled || async_embedding.enabled; }
};

// Returns the settings of the stages that run the lookups, as if SmartStage had
// found them. Call this only if they are enabled.
SmartStageSettings SettingsOfLookups(const SmartStageSettings& settings);

// Reads the settings and checks them against the rest of `config`.
//
// Returns INVALID_ARGUMENT if a field is out of range or cannot have an effect.
// The message names the field, its value and the allowed values. Also returns
// the errors of ReadStreamSettings.
Status ReadSmartStageSettings(const ConfigProto& config,
                              SmartStageSettings* settings);

// Performs the same checks without returning the settings, for the creation of
// a session.
Status CheckSmartStageSettings(const ConfigProto& config);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_SMART_STAGE_SETTINGS_H_
