// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_MULTI_STREAM_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_MULTI_STREAM_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/streams/stream_devices.h"

namespace tensorflow {
namespace staging {

// Gives each GPU of a local session the streams that `config`, the session's
// configuration, asks for: changes its GPUOptions as DivideGpus describes. Does
// nothing if it asks for one stream. Without a GPU, warns once and does nothing
// else.
//
// The devices and their memory belong to the process, and the first session
// that uses them determines them. Returns FAILED_PRECONDITION if what earlier
// sessions have determined does not fit, and the errors of
// ReadStreamSettings, ChooseGpus and DivideGpus. Each message says what to do.
Status CreateGpuStreams(ConfigProto* config);

// Checks the options of a distributed session that is about to be created.
// Returns UNIMPLEMENTED, with a message that says what to do, if they turn on
// RewriterConfig.use_multi_stream.
Status CheckNoMultiStream(const SessionOptions& options);

// Replaces the driver's answer about the memory of a GPU, for GPUs without a
// driver.
using GpuMemoryReader = Status (*)(PhysicalGpu* gpu);
void SetGpuMemoryReaderForTest(GpuMemoryReader reader);

// Forgets what earlier sessions have determined, for tests that pretend to run
// on another machine.
void ForgetGpuStreamsForTest();

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_MULTI_STREAM_H_
