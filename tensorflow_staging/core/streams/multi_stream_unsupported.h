// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_MULTI_STREAM_UNSUPPORTED_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_MULTI_STREAM_UNSUPPORTED_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

// Checks the options of a distributed session that is about to be created.
// Returns UNIMPLEMENTED, with a message that says what to do, if they turn on
// RewriterConfig.use_multi_stream.
Status CheckNoMultiStream(const SessionOptions& options);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_MULTI_STREAM_UNSUPPORTED_H_
