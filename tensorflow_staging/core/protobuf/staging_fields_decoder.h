// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PROTOBUF_STAGING_FIELDS_DECODER_H_
#define TENSORFLOW_STAGING_CORE_PROTOBUF_STAGING_FIELDS_DECODER_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/protobuf/worker.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// Each function reads the staging fields of one TensorFlow message into
// `*fields`, whether the message class declares them or holds them as unknown
// fields.
//
// Overwrites `*fields`. Where the class does not declare the fields, a message
// without unknown fields costs one branch; users who do not stage send no
// others. Returns INVALID_ARGUMENT, naming the message, if the bytes of
// a field are malformed; `*fields` is then empty. do_smart_stage_gpu also sets
// the two fields for which it stands.
Status DecodeConfigFields(const ConfigProto& message, ConfigFields* fields);
Status DecodeOptimizerFields(const OptimizerOptions& message,
                             OptimizerFields* fields);
Status DecodeRewriterFields(const RewriterConfig& message,
                            RewriterFields* fields);
Status DecodeRunFields(const RunOptions& message, RunFields* fields);

// The options that a master sends to its workers with a run; a master of this
// build forwards the RunFields of the client there.
Status DecodeRunFields(const ExecutorOpts& message, RunFields* fields);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PROTOBUF_STAGING_FIELDS_DECODER_H_
