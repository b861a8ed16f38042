// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_FAKE_ACCELERATOR_H_
#define TENSORFLOW_STAGING_CORE_TESTING_FAKE_ACCELERATOR_H_

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/local_device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/device_factory.h"

namespace tensorflow {
namespace staging {

// A device of type GPU for tests on machines without a GPU. Its memory is host
// memory, but every copy between the host and the device inverts all bits. Code
// that reads device memory as host memory, or the reverse, thus reads a wrong
// value.

// Returns the representation of `value` on the other side of the border between
// host and device.
template <typename T>
T AcrossBorder(T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  for (char& byte : bytes) byte = ~byte;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline void CopyAcrossBorder(const Tensor& from, Tensor* to) {
  const char* source = static_cast<const char*>(DMAHelper::base(&from));
  char* target = static_cast<char*>(DMAHelper::base(to));
  for (size_t i = 0; i < from.TotalBytes(); ++i) target[i] = ~source[i];
}

class FakeAcceleratorContext : public DeviceContext {
 public:
  void CopyCPUTensorToDevice(const Tensor* from, Device* device, Tensor* to,
                             StatusCallback done,
                             bool sync_dst_compute) const override {
    CopyAcrossBorder(*from, to);
    done(OkStatus());
  }

  void CopyTensorInSameDevice(const Tensor* from, Device* device, Tensor* to,
                              StatusCallback done) const override {
    std::memcpy(DMAHelper::base(to), DMAHelper::base(from), from->TotalBytes());
    done(OkStatus());
  }

  void CopyDeviceTensorToCPU(const Tensor* from, StringPiece tensor_name,
                             Device* device, Tensor* to,
                             StatusCallback done) override {
    CopyAcrossBorder(*from, to);
    done(OkStatus());
  }
};

class FakeAccelerator : public LocalDevice {
 public:
  FakeAccelerator(const SessionOptions& options, const std::string& name)
      : LocalDevice(options,
                    Device::BuildDeviceAttributes(
                        name, DEVICE_GPU, Bytes(256 << 20), DeviceLocality())),
        context_(new FakeAcceleratorContext) {
    accelerator_.default_context = context_.get();
    set_tensorflow_accelerator_device_info(&accelerator_);
  }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return cpu_allocator();
  }

  Status MakeTensorFromProto(const TensorProto& proto,
                             const AllocatorAttributes attributes,
                             Tensor* tensor) override {
    if (!tensor->FromProto(cpu_allocator(), proto)) {
      return errors::InvalidArgument("Cannot parse tensor from proto.");
    }
    if (!attributes.on_host()) CopyAcrossBorder(*tensor, tensor);
    return OkStatus();
  }

  Status TryGetDeviceContext(DeviceContext** context) override {
    context_->Ref();
    *context = context_.get();
    return OkStatus();
  }

  Status Sync() override { return OkStatus(); }

 private:
  core::RefCountPtr<DeviceContext> context_;
  AcceleratorDeviceInfo accelerator_;
};

class FakeAcceleratorFactory : public DeviceFactory {
 public:
  Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    devices->push_back("/physical_device:GPU:0");
    return OkStatus();
  }

  Status CreateDevices(const SessionOptions& options,
                       const std::string& name_prefix,
                       std::vector<std::unique_ptr<Device>>* devices) override {
    devices->push_back(std::make_unique<FakeAccelerator>(
        options, name_prefix + "/device:GPU:0"));
    return OkStatus();
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_FAKE_ACCELERATOR_H_
