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
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mem.h"
#include "tensorflow/tsl/framework/bfc_allocator.h"

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
    return num_bytes > 0 ? port::AlignedMalloc(num_bytes, alignment) : nullptr;
  }
  void Free(void* ptr, size_t num_bytes) override { port::AlignedFree(ptr); }
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override { return type_; }

 private:
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
  Parts(const std::string& name, int gpu, int64_t memory_limit)
      : executor(FakeGpuExecutor::Get(gpu)),
        memory(NewAllocator(tsl::AllocatorMemoryType::kDevice, memory_limit,
                            absl::StrCat(name, "_bfc"))) {
    compute = NewStream(/*is_compute=*/true);
    host_to_device = NewStream(/*is_compute=*/false);
    device_to_host = NewStream(/*is_compute=*/false);
    device_to_device.push_back(NewStream(/*is_compute=*/false));
  }

  // Returns the parts of virtual device `index` of GPU `gpu`.
  static Parts* Get(int gpu, int index, int64_t memory_limit) {
    static auto* mu = new absl::Mutex;
    static auto* all = new std::map<std::pair<int, int>, Parts*>;
    absl::MutexLock l(mu);
    Parts*& parts = (*all)[{gpu, index}];
    if (parts == nullptr) {
      parts = new Parts(absl::StrCat("fake_gpu_", gpu, "_", index), gpu,
                        memory_limit);
    }
    return parts;
  }

  se::Stream* NewStream(bool is_compute) {
    auto* stream = new se::Stream(executor);
    stream->Init();
    FakeGpuStream::Of(stream)->Use(&counts, is_compute);
    return stream;
  }

  FakeGpuCounts counts;
  se::StreamExecutor* const executor;
  Allocator* const memory;
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

void SetFakeGpuCount(int count) {
  CHECK(count >= 1 && count <= 4) << count;
  gpu_count = count;
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
      devices->push_back(std::make_unique<FakeGpu>(
          options, absl::StrCat(name_prefix, "/device:GPU:", i), spec.gpu,
          FakeGpu::Parts::Get(spec.gpu, spec.index, spec.memory_limit)));
    }
    return OkStatus();
  }

 private:
  // A virtual device.
  struct Spec {
    // Devices are numbered by ordinal, then by GPU, then by index.
    int ordinal;
    int gpu;
    // Of the device, among those of its GPU.
    int index;
    int64_t memory_limit;

    bool operator<(const Spec& other) const {
      return std::tie(ordinal, gpu, index) <
             std::tie(other.ordinal, other.gpu, other.index);
    }
  };

  static Status FindSpecs(const ConfigProto& config, std::vector<Spec>* specs) {
    int gpus = gpu_count;
    const auto limit = config.device_count().find("GPU");
    if (limit != config.device_count().end()) {
      gpus = std::min<int>(gpus, limit->second);
    }
    const auto& virtual_devices =
        config.gpu_options().experimental().virtual_devices();
    if (!virtual_devices.empty() && virtual_devices.size() != gpus) {
      return errors::InvalidArgument("virtual_devices describes ",
                                     virtual_devices.size(),
                                     " GPUs; there are ", gpus, ".");
    }
    for (int gpu = 0; gpu < gpus; ++gpu) {
      if (virtual_devices.empty() ||
          virtual_devices[gpu].memory_limit_mb().empty()) {
        specs->push_back({/*ordinal=*/0, gpu, /*index=*/0, kDefaultMemory});
        continue;
      }
      const auto& devices = virtual_devices[gpu];
      for (int i = 0; i < devices.memory_limit_mb_size(); ++i) {
        specs->push_back(
            {i < devices.device_ordinal_size() ? devices.device_ordinal(i) : 0,
             gpu, i, static_cast<int64_t>(devices.memory_limit_mb(i)) << 20});
      }
    }
    std::sort(specs->begin(), specs->end());
    return OkStatus();
  }
};

// TensorFlow's own factory of GPUs, where there is one, has priority 210. Two
// factories of one priority end the process.
REGISTER_LOCAL_DEVICE_FACTORY("GPU", FakeGpuFactory, 220);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
