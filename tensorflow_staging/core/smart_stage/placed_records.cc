// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/placed_records.h"

#include <algorithm>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/graph_execution_state.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/smart_stage/asking_session.h"
#include "tensorflow_staging/core/streams/stream_settings.h"

namespace tensorflow {
namespace staging {
namespace {

// A device on which nothing runs.
class NamedDevice : public Device {
 public:
  NamedDevice(const char* type, int index)
      : Device(nullptr,
               Device::BuildDeviceAttributes(
                   absl::StrCat("/job:localhost/replica:0/task:0/device:", type,
                                ":", index),
                   DeviceType(type), Bytes(0), DeviceLocality())) {}

  Status Sync() override { return OkStatus(); }
  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return nullptr;
  }
};

// How many devices of a type `config` asks for.
int WantedDevices(const ConfigProto& config, const char* type, int otherwise) {
  const auto wanted = config.device_count().find(type);
  return wanted == config.device_count().end() ? otherwise : wanted->second;
}

// Returns how many GPUs a session has, as TensorFlow's devices count them.
int CountGpus(const ConfigProto& config) {
  DeviceFactory* const factory = DeviceFactory::GetFactory(DEVICE_GPU);
  std::vector<std::string> physical;
  if (factory == nullptr || !factory->ListPhysicalDevices(&physical).ok()) {
    return 0;
  }
  const GPUOptions& options = config.gpu_options();
  int gpus = static_cast<int>(physical.size());
  if (!options.visible_device_list().empty()) {
    const std::vector<std::string> visible =
        absl::StrSplit(options.visible_device_list(), ',');
    gpus = std::min(gpus, static_cast<int>(visible.size()));
  }
  gpus = std::min(gpus, WantedDevices(config, DEVICE_GPU, gpus));
  int devices = gpus;
  const auto& split = options.experimental().virtual_devices();
  for (int i = 0; i < std::min(gpus, split.size()); ++i) {
    devices += std::max(split[i].memory_limit_mb_size(), 1) - 1;
  }
  return devices;
}

// What the graph passes see as a session's devices.
class NamedDevices {
 public:
  NamedDevices(int cpus, int gpus) {
    for (int i = 0; i < cpus; ++i) Add(DEVICE_CPU, i);
    for (int i = 0; i < gpus; ++i) Add(DEVICE_GPU, i);
  }

  const DeviceSet& set() const { return set_; }

 private:
  void Add(const char* type, int index) {
    devices_.push_back(std::make_unique<NamedDevice>(type, index));
    set_.AddDevice(devices_.back().get());
  }

  std::vector<std::unique_ptr<NamedDevice>> devices_;
  DeviceSet set_;
};

// Whether a node asks for a device of a cluster, which only a session of that has,
// or needs a GPU where there is none.
bool NamesOtherDevices(const GraphDef& graph, const ConfigProto& config,
                       int gpus) {
  const bool needs_gpus = !config.allow_soft_placement();
  return absl::c_any_of(graph.node(), [=](const NodeDef& node) {
    DeviceNameUtils::ParsedName device;
    if (!DeviceNameUtils::ParseFullName(node.device(), &device)) return false;
    const bool of_cluster = device.has_job && device.job != "localhost";
    return of_cluster || (needs_gpus && gpus == 0 && device.has_type &&
                          device.type == DEVICE_GPU);
  });
}

// Returns the options of the session: those of which the passes know whether to
// look for stages.
Status OptionsOf(const ConfigProto& config, SessionOptions* options) {
  options->config = config;
  GraphOptions& graph = *options->config.mutable_graph_options();
  graph.set_place_pruned_graph(false);
  OptimizerFields fields;
  TF_RETURN_IF_ERROR(DecodeOptimizerFields(graph.optimizer_options(), &fields));
  if (fields.do_async_embedding()) return OkStatus();
  OptimizerFields on;
  on.set_do_smart_stage(true);
  if (!graph.mutable_optimizer_options()->MergeFromString(
          on.SerializeAsString())) {
    return errors::Internal("SmartStage could not be turned on.");
  }
  return OkStatus();
}

// Adds to `names` how the step calls each tensor of the records, by its index.
void NameTensors(const RecordUses& uses, const Node& take,
                 std::map<int, std::string>* names) {
  for (const Carried& carried : uses.carried()) {
    const bool is_direct = carried.stand_in == nullptr;
    const Node& node = is_direct ? take : *carried.stand_in;
    const int output =
        is_direct ? carried.take_output : carried.stand_in_output;
    names->emplace(carried.take_output, absl::StrCat(node.name(), ":", output));
  }
}

// Sets `*found` to what accelerators get of the records behind `take`.
Status FindDestinations(const Graph& graph, Node* take,
                        RecordDestinations* found) {
  const std::string& device = take->assigned_device_name();
  if (!IsAccelerator(device)) return OkStatus();
  RecordUses uses(graph, take);
  TF_RETURN_IF_ERROR(uses.Find());
  std::map<int, std::string> names;
  NameTensors(uses, *take, &names);
  const auto add = [&names, found](const std::string& to,
                                   const std::vector<int>& tensors) {
    std::vector<std::string> named;
    for (const int i : tensors) {
      const auto name = names.find(i);
      if (name != names.end()) named.push_back(name->second);
    }
    found->emplace_back(to, std::move(named));
  };
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(MemoryOn(device, graph, *take, &inputs, &outputs));
  std::vector<int> held;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == DEVICE_MEMORY) held.push_back(static_cast<int>(i));
  }
  add(device, held);
  std::vector<DeviceShare> shares;
  TF_RETURN_IF_ERROR(ReadShares(take->def(), take->num_outputs(), &shares));
  for (const DeviceShare& share : shares) add(share.device, share.tensors);
  return OkStatus();
}

}  // namespace

Status FindRecordDestinations(
    const GraphDef& graph, const ConfigProto& config,
    std::map<std::string, RecordDestinations>* stages) {
  stages->clear();
  const int gpus = CountGpus(config);
  if (NamesOtherDevices(graph, config, gpus)) {
    return errors::Unimplemented("The graph names devices of other processes.");
  }
  // TensorFlow has nothing to decide.
  if (gpus == 0) return OkStatus();
  StreamSettings streams;
  TF_RETURN_IF_ERROR(ReadStreamSettings(config, &streams));
  if (streams.enabled && streams.streams > 1) {
    return errors::Unimplemented("The GPUs have several streams.");
  }
  const NamedDevices devices(WantedDevices(config, DEVICE_CPU, 1), gpus);
  SessionOptions options;
  TF_RETURN_IF_ERROR(OptionsOf(config, &options));
  GraphExecutionStateOptions state_options;
  state_options.device_set = &devices.set();
  state_options.session_options = &options;
  state_options.session_handle = kAskingSession;
  std::unique_ptr<GraphExecutionState> state;
  TF_RETURN_IF_ERROR(GraphExecutionState::MakeForBaseGraph(
      GraphDef(graph), state_options, &state));
  const Graph& placed = *state->full_graph();
  for (const StageRecords& stage : FindStageRecords(placed)) {
    // The first Take is that of the stage itself.
    if (stage.takes.empty()) continue;
    Node* const take = stage.takes.front();
    TF_RETURN_IF_ERROR(
        FindDestinations(placed, take, &(*stages)[BufferOf(*take)->name]));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
