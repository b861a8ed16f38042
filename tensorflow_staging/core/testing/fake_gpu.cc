// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/fake_gpu.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mem.h"
#include "tensorflow/tsl/framework/bfc_allocator.h"
#include "tensorflow/tsl/framework/device_id_manager.h"
#include "tensorflow/tsl/framework/device_id_utils.h"
#include "tensorflow_staging/core/streams/multi_stream.h"

namespace tensorflow {
namespace staging {
namespace {

namespace se = ::stream_executor;

// The memory of a GPU without a limit of its own.
constexpr int64_t kDefaultMemory = int64_t{256} << 20;
constexpr int64_t kPinnedMemory = int64_t{256} << 20;

// Host memory in the role of a GPU's memory, or of pinned memory.
class FakeMemory : public tsl::SubAllocator {
 public:
  explicit FakeMemory(tsl::AllocatorMemoryType type)
      : SubAllocator({}, {}), type_(type) {}

  void* Alloc(size_t alignment, size_t num_bytes,
              size_t* bytes_received) override {
    *bytes_received = num_bytes;
    if (num_bytes == 0) return nullptr;
    void* const memory = port::AlignedMalloc(num_bytes, alignment);
    if (IsPinned()) NotePinned(memory, num_bytes);
    return memory;
  }
  void Free(void* ptr, size_t num_bytes) override {
    if (IsPinned()) NoteNotPinned(ptr);
    port::AlignedFree(ptr);
  }
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override { return type_; }

 private:
  bool IsPinned() const {
    return type_ == tsl::AllocatorMemoryType::kHostPinned;
  }

  const tsl::AllocatorMemoryType type_;
};

Allocator* NewAllocator(tsl::AllocatorMemoryType type, int64_t limit,
                        const std::string& name) {
  return new tsl::BFCAllocator(std::make_unique<FakeMemory>(type), limit, name,
                               tsl::BFCAllocator::Options());
}

Allocator* PinnedMemory() {
  static Allocator* allocator =
      NewAllocator(tsl::AllocatorMemoryType::kHostPinned, kPinnedMemory,
                   "fake_gpu_host_bfc");
  return allocator;
}

std::atomic<int> gpu_count{1};

}  // namespace

struct FakeGpu::Parts {
  // All parts of the process. Parts that are not in use are kept for the next
  // device with the same memory, so that there are few threads.
  struct Process {
    static Process* Get() {
      static auto* process = new Process;
      return process;
    }

    absl::Mutex mu;
    // By GPU, index and memory limit.
    std::map<std::tuple<int, int, int64_t>, Parts*> all;
    // By GPU and index.
    std::map<std::pair<int, int>, Parts*> in_use;
  };

  Parts(const std::string& name, int gpu, int64_t memory_limit)
      : executor(FakeGpuExecutor::Get(gpu)),
        memory(new FakeGpuMemory(NewAllocator(tsl::AllocatorMemoryType::kDevice,
                                              memory_limit,
                                              absl::StrCat(name, "_bfc")))) {
    compute = NewStream(/*is_compute=*/true);
    host_to_device = NewStream(/*is_compute=*/false);
    device_to_host = NewStream(/*is_compute=*/false);
    device_to_device.push_back(NewStream(/*is_compute=*/false));
  }

  // Returns the parts of virtual device `index` of GPU `gpu`. Its memory limit
  // is that of the first session that has used the device.
  static Parts* Get(int gpu, int index, int64_t memory_limit) {
    Process* process = Process::Get();
    absl::MutexLock l(&process->mu);
    Parts*& in_use = process->in_use[{gpu, index}];
    if (in_use == nullptr) {
      Parts*& parts = process->all[{gpu, index, memory_limit}];
      if (parts == nullptr) {
        parts = new Parts(absl::StrCat("fake_gpu_", gpu, "_", index), gpu,
                          memory_limit);
      }
      in_use = parts;
      if (index == 0) {
        FakeGpuExecutor::Of(parts->executor)->SetCounts(&parts->counts);
      }
    }
    return in_use;
  }

  // Lets the next session that uses a device choose its memory limit.
  static void ForgetLimits() {
    Process* process = Process::Get();
    absl::MutexLock l(&process->mu);
    process->in_use.clear();
  }

  se::Stream* NewStream(bool is_compute) {
    auto* stream = new se::Stream(executor);
    stream->Init();
    FakeGpuStream::Of(stream)->Use(&counts, is_compute);
    return stream;
  }

  FakeGpuCounts counts;
  se::StreamExecutor* const executor;
  FakeGpuMemory* const memory;
  se::Stream* compute;
  se::Stream* host_to_device;
  se::Stream* device_to_host;
  gtl::InlinedVector<se::Stream*, 4> device_to_device;
};

FakeGpu::FakeGpu(const SessionOptions& options, const std::string& name,
                 int gpu, Parts* parts)
    : LocalDevice(
          options,
          Device::BuildDeviceAttributes(
              name, DEVICE_GPU,
              Bytes(parts->memory->GetStats()->bytes_limit.value_or(0)),
              DeviceLocality(), absl::StrCat("device: ", gpu, ", name: fake"))),
      parts_(parts),
      context_(new GPUDeviceContext(
          /*stream_id=*/0, parts->compute, parts->host_to_device,
          parts->device_to_host, parts->device_to_device, PinnedMemory())) {
  accelerator_.stream = parts->compute;
  accelerator_.default_context = context_.get();
  accelerator_.event_mgr = EventMgrFactory::Singleton()->GetEventMgr(
      parts->executor, options.config.gpu_options());
  accelerator_.gpu_id = gpu;
  set_tensorflow_accelerator_device_info(&accelerator_);
}

FakeGpu* FakeGpu::Of(Session* session, int index) {
  const DeviceMgr* devices = nullptr;
  TF_CHECK_OK(session->LocalDeviceManager(&devices));
  Device* device = nullptr;
  TF_CHECK_OK(
      devices->LookupDevice(absl::StrCat("/device:GPU:", index), &device));
  return static_cast<FakeGpu*>(device);
}

Allocator* FakeGpu::GetAllocator(AllocatorAttributes attributes) {
  if (!attributes.on_host()) return parts_->memory;
  return attributes.gpu_compatible() ? PinnedMemory() : cpu_allocator();
}

Status FakeGpu::MakeTensorFromProto(const TensorProto& proto,
                                    const AllocatorAttributes attributes,
                                    Tensor* tensor) {
  Tensor on_host;
  if (!on_host.FromProto(cpu_allocator(), proto)) {
    return errors::InvalidArgument("Cannot parse tensor from proto.");
  }
  if (attributes.on_host()) {
    *tensor = on_host;
    return OkStatus();
  }
  *tensor = Tensor(parts_->memory, on_host.dtype(), on_host.shape());
  return context_->CopyCPUTensorToDeviceSync(&on_host, this, tensor);
}

Status FakeGpu::TryGetDeviceContext(DeviceContext** context) {
  context_->Ref();
  *context = context_.get();
  return OkStatus();
}

Status FakeGpu::Sync() {
  ++parts_->counts.syncs;
  return parts_->compute->BlockHostUntilDone();
}

se::Stream* FakeGpu::compute_stream() { return parts_->compute; }

FakeGpuCounts& FakeGpu::counts() { return parts_->counts; }

FakeGpuMemory& FakeGpu::memory() { return *parts_->memory; }

int64_t FakeGpu::peak_bytes() {
  return GetAllocator({})->GetStats()->peak_bytes_in_use;
}

void SetFakeGpuCount(int count) {
  CHECK(count >= 1 && count <= 4) << count;
  gpu_count = count;
  FakeGpu::Parts::ForgetLimits();
  tsl::DeviceIdManager::TestOnlyReset();
  ForgetGpuStreamsForTest();
}

void LaunchOnFakeGpu(OpKernelContext* ctx, std::function<void()> kernel) {
  ctx->op_device_context()->stream()->ThenDoHostCallback(std::move(kernel));
}

StoppedFakeGpu::StoppedFakeGpu(FakeGpu* gpu)
    : released_(std::make_shared<absl::Notification>()) {
  FakeGpuStream::Of(gpu->compute_stream())->EnqueueTask([released = released_] {
    released->WaitForNotification();
  });
}

void StoppedFakeGpu::Release() {
  if (!released_->HasBeenNotified()) released_->Notify();
}

namespace {

class FakeGpuFactory : public DeviceFactory {
 public:
  FakeGpuFactory() {
    SetGpuMemoryReaderForTest([](PhysicalGpu* gpu) {
      gpu->free_bytes = gpu->total_bytes = kDefaultMemory;
      return OkStatus();
    });
  }

  Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    for (int gpu = 0; gpu < gpu_count; ++gpu) {
      devices->push_back(absl::StrCat("/physical_device:GPU:", gpu));
    }
    return OkStatus();
  }

  Status CreateDevices(const SessionOptions& options,
                       const std::string& name_prefix,
                       std::vector<std::unique_ptr<Device>>* devices) override {
    std::vector<Spec> specs;
    TF_RETURN_IF_ERROR(FindSpecs(options.config, &specs));
    for (size_t i = 0; i < specs.size(); ++i) {
      const Spec& spec = specs[i];
      TF_RETURN_IF_ERROR(tsl::DeviceIdManager::InsertTfPlatformDeviceIdPair(
          DEVICE_GPU, tsl::TfDeviceId(i), tsl::PlatformDeviceId(spec.gpu)));
      devices->push_back(std::make_unique<FakeGpu>(
          options, absl::StrCat(name_prefix, "/device:GPU:", i), spec.gpu,
          FakeGpu::Parts::Get(spec.gpu, spec.index, spec.memory_limit)));
    }
    return OkStatus();
  }

 private:
  // A virtual device.
  struct Spec {
    // Devices are numbered by ordinal, then by the position of their GPU among
    // the visible ones, then by index.
    int ordinal;
    int position;
    int gpu;
    // Of the device, among those of its GPU.
    int index;
    int64_t memory_limit;

    bool operator<(const Spec& other) const {
      return std::tie(ordinal, position, index) <
             std::tie(other.ordinal, other.position, other.index);
    }
  };

  static Status FindSpecs(const ConfigProto& config, std::vector<Spec>* specs) {
    const GPUOptions& options = config.gpu_options();
    std::vector<tsl::PlatformDeviceId> visible;
    TF_RETURN_IF_ERROR(tsl::ParseVisibleDeviceList(
        options.visible_device_list(), gpu_count, &visible));
    int gpus = visible.size();
    const auto limit = config.device_count().find("GPU");
    if (limit != config.device_count().end()) {
      gpus = std::min<int>(gpus, limit->second);
    }
    const auto& virtual_devices = options.experimental().virtual_devices();
    if (!virtual_devices.empty()) {
      // device_count does not choose among GPUs with virtual devices.
      if (virtual_devices.size() > gpus ||
          static_cast<size_t>(virtual_devices.size()) != visible.size()) {
        return errors::InvalidArgument("virtual_devices describes ",
                                       virtual_devices.size(),
                                       " GPUs; there are ", visible.size(),
                                       ", of which ", gpus, " may be used.");
      }
      if (options.per_process_gpu_memory_fraction() > 0) {
        return errors::InvalidArgument(
            "per_process_gpu_memory_fraction cannot be set with "
            "virtual_devices.");
      }
    }
    for (int i = 0; i < gpus; ++i) {
      const int gpu = visible[i].value();
      if (virtual_devices.empty() ||
          virtual_devices[i].memory_limit_mb().empty()) {
        specs->push_back(
            {/*ordinal=*/0, /*position=*/i, gpu, /*index=*/0, kDefaultMemory});
        continue;
      }
      const auto& devices = virtual_devices[i];
      for (int j = 0; j < devices.memory_limit_mb_size(); ++j) {
        specs->push_back(
            {j < devices.device_ordinal_size() ? devices.device_ordinal(j) : 0,
             /*position=*/i, gpu, /*index=*/j,
             static_cast<int64_t>(devices.memory_limit_mb(j)) << 20});
      }
    }
    std::sort(specs->begin(), specs->end());
    return OkStatus();
  }
};

// A CPU beside a GPU, as TensorFlow has it: kernels put outputs that go to the
// GPU into pinned memory.
class CpuBesideFakeGpu : public ThreadPoolDevice {
 public:
  using ThreadPoolDevice::ThreadPoolDevice;

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    if (attributes.gpu_compatible()) return PinnedMemory();
    return ThreadPoolDevice::GetAllocator(attributes);
  }
};

class CpuBesideFakeGpuFactory : public DeviceFactory {
 public:
  Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    devices->push_back("/physical_device:CPU:0");
    return OkStatus();
  }

  Status CreateDevices(const SessionOptions& options,
                       const std::string& name_prefix,
                       std::vector<std::unique_ptr<Device>>* devices) override {
    const auto count = options.config.device_count().find("CPU");
    const int cpus =
        count == options.config.device_count().end() ? 1 : count->second;
    for (int i = 0; i < cpus; ++i) {
      devices->push_back(std::make_unique<CpuBesideFakeGpu>(
          options, absl::StrCat(name_prefix, "/device:CPU:", i),
          Bytes(kPinnedMemory), DeviceLocality(), cpu_allocator()));
    }
    return OkStatus();
  }
};

// TensorFlow's own factory of such CPUs, where there is one, has priority 70.
REGISTER_LOCAL_DEVICE_FACTORY("CPU", CpuBesideFakeGpuFactory, 80);

// TensorFlow's own factory of GPUs, where there is one, has priority 210. Two
// factories of one priority end the process.
REGISTER_LOCAL_DEVICE_FACTORY("GPU", FakeGpuFactory, 220);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
