// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SESSION_SMART_STAGE_SETTINGS_H_
#define TENSORFLOW_STAGING_CORE_SESSION_SMART_STAGE_SETTINGS_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// What OptimizerOptions say of SmartStage, with defaults in the place of fields
// that are not set.
struct SmartStageSettings {
  bool enabled = false;
  // Whether stages run on the CPU; may be so without `enabled`, for the stages
  // of tf.staged.
  bool on_cpu = false;
  // Empty if any name will do.
  std::string name;
  int64_t capacity = 1;
  int num_threads = 1;
  int64_t timeout_millis = 300000;
  int64_t stream_id = 0;
  // Without the names of nodes.
  PrefetchRunnerOptions runner;
};

// Reads the settings and checks them against the rest of `config`.
//
// Returns INVALID_ARGUMENT, naming the field, its value and what is allowed, if
// a field is out of range or cannot have an effect.
Status ReadSmartStageSettings(const ConfigProto& config,
                              SmartStageSettings* settings);

// The check alone, for when a session is made.
Status CheckSmartStageSettings(const ConfigProto& config);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SESSION_SMART_STAGE_SETTINGS_H_
