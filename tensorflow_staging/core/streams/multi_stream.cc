// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/multi_stream.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tensorflow/compiler/xla/stream_executor/multi_platform_manager.h"
#include "tensorflow/compiler/xla/stream_executor/platform.h"
#include "tensorflow/compiler/xla/stream_executor/stream_executor.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/tsl/framework/device_id_manager.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/streams/stream_settings.h"

namespace tensorflow {
namespace staging {
namespace {

// Asks the driver for the memory of GPU `gpu->id`.
Status AskDriver(PhysicalGpu* gpu) {
  namespace se = ::stream_executor;
  TF_ASSIGN_OR_RETURN(se::Platform * platform,
                      se::MultiPlatformManager::PlatformWithName("CUDA"));
  TF_ASSIGN_OR_RETURN(se::StreamExecutor * executor,
                      platform->ExecutorForDevice(gpu->id));
  if (!executor->DeviceMemoryUsage(&gpu->free_bytes, &gpu->total_bytes)) {
    return errors::Unknown("The driver does not report the memory of GPU ",
                           gpu->id, ".");
  }
  return OkStatus();
}

std::atomic<GpuMemoryReader> gpu_memory_reader{AskDriver};

// The streams of a session.
struct Streams {
  int count;
  std::vector<double> memory_shares;
  double memory_fraction;
  // Of the GPUs that have them.
  std::vector<int> ids;

  bool operator==(const Streams& other) const {
    return count == other.count && memory_shares == other.memory_shares &&
           memory_fraction == other.memory_fraction && ids == other.ids;
  }
};

std::string Describe(const Streams& streams) {
  std::string text =
      strings::StrCat(streams.count, " streams on each of the GPUs ",
                      absl::StrJoin(streams.ids, ","));
  if (streams.memory_fraction > 0) {
    strings::StrAppend(&text, " with the memory fraction ",
                       streams.memory_fraction);
  }
  if (!streams.memory_shares.empty()) {
    strings::StrAppend(&text, ", divided into shares of ",
                       absl::StrJoin(streams.memory_shares, ", "));
  }
  return text;
}

// Lists the GPUs that TensorFlow can use.
Status ListGpus(std::vector<int>* ids) {
  DeviceFactory* factory = DeviceFactory::GetFactory(DEVICE_GPU);
  if (factory == nullptr) return OkStatus();
  std::vector<std::string> names;
  TF_RETURN_IF_ERROR(factory->ListPhysicalDevices(&names));
  for (const std::string& name : names) {
    int id;
    if (!absl::SimpleAtoi(name.substr(name.rfind(':') + 1), &id)) {
      return errors::Internal("The name of the GPU '", name,
                              "' does not end with its number.");
    }
    ids->push_back(id);
  }
  return OkStatus();
}

// Checks that no earlier session of the process has given a number of a device
// to another GPU. Sets `*shared` to whether it has given one to the same GPU.
Status CheckDeviceNumbers(int count, const std::vector<int>& ids,
                          bool* shared) {
  *shared = false;
  const int gpus = ids.size();
  for (int device = 0; device < count * gpus; ++device) {
    tsl::PlatformDeviceId earlier;
    if (!tsl::DeviceIdManager::TfToPlatformDeviceId(
             DEVICE_GPU, tsl::TfDeviceId(device), &earlier)
             .ok()) {
      continue;
    }
    const int gpu = ids[device % gpus];
    if (earlier.value() != gpu) {
      return errors::FailedPrecondition(
          "This session asks for ",
          Describe({count, /*memory_shares=*/{}, /*memory_fraction=*/0, ids}),
          ", so its device GPU:", device, " would be stream ", device / gpus,
          " of GPU ", gpu, ". But an earlier session of this process has made ",
          "GPU:", device, " a device of GPU ", earlier.value(),
          ". TensorFlow keeps the numbers of devices until the process ends: "
          "use the same visible_device_list and device_count in all sessions, "
          "or another process.");
    }
    *shared = true;
  }
  return OkStatus();
}

class ProcessStreams {
 public:
  static ProcessStreams* Get() {
    static auto* streams = new ProcessStreams;
    return streams;
  }

  // Changes `config` for a session with these settings.
  //
  // TensorFlow's list of GPUs is not safe for concurrent use, and only one
  // session can be the first. So the lock is held while the driver is asked.
  Status Use(const StreamSettings& settings, ConfigProto* config)
      TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    GPUOptions* const options = config->mutable_gpu_options();
    Streams wanted = {settings.streams, settings.memory_shares,
                      options->per_process_gpu_memory_fraction()};
    std::vector<int> physical;
    TF_RETURN_IF_ERROR(ListGpus(&physical));
    TF_RETURN_IF_ERROR(ChooseGpus(*config, physical, &wanted.ids));
    if (wanted.ids.empty()) {
      if (!std::exchange(warned_, true)) {
        LOG(WARNING) << "use_multi_stream is ON with " << settings.streams
                     << " streams, but the session has no GPU. Everything runs "
                        "as if it had one stream.";
      }
      return OkStatus();
    }
    if (!first_.has_value()) return BeFirst(wanted, options);
    if (!(wanted == *first_)) {
      return errors::FailedPrecondition(
          "This session asks for ", Describe(wanted),
          ", but an earlier session of this process has ", Describe(*first_),
          ". Streams belong to the process, until it ends: use the same "
          "multi_stream_num, memory_shares, visible_device_list, device_count "
          "and per_process_gpu_memory_fraction in all sessions with several "
          "streams, or another process.");
    }
    return DivideGpus(wanted.count, wanted.memory_shares, gpus_, options);
  }

  void Forget() TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    first_.reset();
    warned_ = false;
  }

 private:
  Status BeFirst(const Streams& wanted, GPUOptions* options)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    bool shared;
    TF_RETURN_IF_ERROR(CheckDeviceNumbers(wanted.count, wanted.ids, &shared));
    gpus_.clear();
    for (const int id : wanted.ids) {
      gpus_.push_back({id});
      TF_RETURN_IF_ERROR(gpu_memory_reader.load()(&gpus_.back()));
    }
    TF_RETURN_IF_ERROR(
        DivideGpus(wanted.count, wanted.memory_shares, gpus_, options));
    if (shared) {
      LOG(WARNING) << "An earlier session of this process has used a GPU with "
                      "one stream. What it has set for the memory of stream 0 "
                      "stays, and this session's gpu_options do not change it.";
    }
    first_ = wanted;
    return OkStatus();
  }

  mutex mu_;
  // What the first session with several streams has determined for the process,
  // with the memory that was free at that time. Now the streams themselves have
  // taken some of it.
  std::optional<Streams> first_ TF_GUARDED_BY(mu_);
  std::vector<PhysicalGpu> gpus_ TF_GUARDED_BY(mu_);
  // Whether a session without a GPU has asked for streams.
  bool warned_ TF_GUARDED_BY(mu_) = false;
};

}  // namespace

Status CreateGpuStreams(ConfigProto* config) {
  StreamSettings settings;
  TF_RETURN_IF_ERROR(ReadStreamSettings(*config, &settings));
  if (settings.streams == 1) return OkStatus();
  return ProcessStreams::Get()->Use(settings, config);
}

Status CheckNoMultiStream(const SessionOptions& options) {
  RewriterFields fields;
  TF_RETURN_IF_ERROR(DecodeRewriterFields(
      options.config.graph_options().rewrite_options(), &fields));
  if (fields.use_multi_stream() != RewriterConfig::ON) return OkStatus();
  return errors::Unimplemented(
      "rewrite_options.use_multi_stream is ON, but the target of the session "
      "is ",
      options.target,
      ": several GPU streams are not supported in distributed sessions. Turn "
      "it off, or use a local session, whose target is empty.");
}

void SetGpuMemoryReaderForTest(GpuMemoryReader reader) {
  gpu_memory_reader = reader;
}

void ForgetGpuStreamsForTest() { ProcessStreams::Get()->Forget(); }

}  // namespace staging
}  // namespace tensorflow
