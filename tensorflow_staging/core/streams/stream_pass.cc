// SPDX-License-Identifier: Apache-2.0
//
// The graph passes that put the nodes of a session's graph on the streams of
// its GPUs. They only read options and call the other files of this folder.

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/framework/graph_pass.h"
#include "tensorflow_staging/core/streams/requested_streams.h"
#include "tensorflow_staging/core/streams/stream_constants.h"
#include "tensorflow_staging/core/streams/stream_placement.h"
#include "tensorflow_staging/core/streams/stream_settings.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns how many GPUs with several streams a session has. CreateGpuStreams
// has described the streams in the session's options.
int GpusWithStreams(const ConfigProto& config, const StreamSettings& settings) {
  if (settings.streams == 1) return 0;
  return config.gpu_options().experimental().virtual_devices_size();
}

// Runs on the whole graph whenever a session's graph is created or extended,
// after placement.
Status PlaceStreams(const GraphOptimizationPassOptions& options, Graph* graph) {
  const ConfigProto& config = options.session_options->config;
  StreamSettings settings;
  TF_RETURN_IF_ERROR(ReadStreamSettings(config, &settings));
  if (!settings.enabled) {
    if (settings.stages) {
      LOG_FIRST_N(WARNING, 1)
          << "optimizer_options.stage_multi_stream has no effect, because "
             "rewrite_options.use_multi_stream is not ON: stages run on the "
             "only stream of their GPU.";
    }
    return OkStatus();
  }
  RequestedStreams requested;
  TF_RETURN_IF_ERROR(ReadRequestedStreams(settings, *graph, &requested));
  const int gpus = GpusWithStreams(config, settings);
  if (gpus > 0) PlaceOnStreams(gpus, requested, graph);
  return OkStatus();
}

// Runs on the graph of each run. A run may feed a constant, so the constants of
// the session's graph cannot have copies.
Status CopyConstants(const GraphOptimizationPassOptions& options,
                     Graph* graph) {
  const ConfigProto& config = options.session_options->config;
  StreamSettings settings;
  TF_RETURN_IF_ERROR(ReadStreamSettings(config, &settings));
  const int gpus = GpusWithStreams(config, settings);
  return gpus == 0 ? OkStatus() : CopyConstantsToStreams(gpus, graph);
}

// Before stages deliver their records (5), to the devices where the step uses
// them.
REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_PLACEMENT, 4,
                      GraphPass<PlaceStreams>);
REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 6,
                      GraphPass<CopyConstants>);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
