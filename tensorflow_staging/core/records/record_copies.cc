// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_copies.h"

#include <utility>

#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/session_device.h"

namespace tensorflow {
namespace staging {
namespace {

// What errors call the devices.
constexpr char kDevice[] = "The device of the records";

}  // namespace

// Copies that are under way. It ends when the call that started them and all of
// them have ended.
class RecordCopies::Batch {
 public:
  Batch(Records records, Done done)
      : from_(std::move(records)), to_(from_), done_(std::move(done)) {}

  const Records& from() const { return from_; }
  Records* to() { return &to_; }

  void Begin() {
    mutex_lock l(mu_);
    ++active_;
  }

  void End(const Status& status) {
    Status result;
    {
      mutex_lock l(mu_);
      status_.Update(status);
      if (--active_ > 0) return;
      result = status_;
    }
    from_.clear();
    if (!result.ok()) to_.clear();
    done_(result, std::move(to_));
  }

 private:
  // What is copied lives as long as the copies.
  Records from_;
  Records to_;
  Done done_;
  mutex mu_;
  int64_t active_ TF_GUARDED_BY(mu_) = 1;
  Status status_ TF_GUARDED_BY(mu_);
};

RecordCopies::RecordCopies(std::string device, std::vector<std::string> names,
                           std::vector<int> on_device)
    : device_(std::move(device)),
      names_(std::move(names)),
      on_device_(std::move(on_device)) {}

void RecordCopies::ToHost(OpKernelContext* ctx, Records records,
                          Done done) const {
  Start(/*to_host=*/true, ctx, std::move(records), std::move(done));
}

void RecordCopies::ToDevice(OpKernelContext* ctx, Records records,
                            Done done) const {
  Start(/*to_host=*/false, ctx, std::move(records), std::move(done));
}

Status RecordCopies::FindEnds(OpKernelContext* ctx, Ends* ends) const {
  TF_RETURN_IF_ERROR(FindSessionDevice(*ctx, kDevice, device_, &ends->device));
  DeviceNameUtils::ParsedName host = ends->device->parsed_name();
  host.type = DEVICE_CPU;
  host.id = 0;
  TF_RETURN_IF_ERROR(FindSessionDevice(
      *ctx, kDevice, DeviceNameUtils::ParsedNameToString(host), &ends->host));
  const DeviceBase::AcceleratorDeviceInfo* info =
      ends->device->tensorflow_accelerator_device_info();
  if (info == nullptr || info->default_context == nullptr) {
    return errors::InvalidArgument(
        "Records are on '", device_,
        "', which is no accelerator to and from which tensors can be copied.");
  }
  ends->context = info->default_context;
  return OkStatus();
}

void RecordCopies::Start(bool to_host, OpKernelContext* ctx, Records records,
                         Done done) const {
  const auto batch =
      std::make_shared<Batch>(std::move(records), std::move(done));
  Ends ends;
  Status status = FindEnds(ctx, &ends);
  for (size_t r = 0; status.ok() && to_host && r < batch->from().size(); ++r) {
    // TensorFlow's copies to the host wait for the kernels.
    status = AwaitContent(batch->from()[r], *ends.device);
  }
  for (size_t r = 0; status.ok() && r < batch->from().size(); ++r) {
    for (int i : on_device_) {
      status = StartCopy(to_host, ends, i, batch->from()[r][i],
                         &(*batch->to())[r][i], batch);
      if (!status.ok()) {
        status = Named(status, i);
        break;
      }
    }
  }
  batch->End(status);
}

Status RecordCopies::StartCopy(bool to_host, const Ends& ends, int i,
                               const Tensor& from, Tensor* to,
                               const std::shared_ptr<Batch>& batch) const {
  const bool is_variant = from.dtype() == DT_VARIANT;
  if (!is_variant && !DataTypeCanUseMemcpy(from.dtype())) {
    return errors::InvalidArgument("it is of type ",
                                   DataTypeString(from.dtype()),
                                   ", which can only be in host memory.");
  }
  if (from.NumElements() == 0) return OkStatus();
  AllocatorAttributes pinned;
  pinned.set_on_host(true);
  pinned.set_gpu_compatible(true);
  const AllocatorAttributes in_place;
  // CopyTensor allocates variants by itself.
  if (!is_variant) {
    Allocator* const allocator =
        ends.device->GetAllocator(to_host ? pinned : in_place);
    *to = Tensor(allocator, from.dtype(), from.shape());
    if (!to->IsInitialized()) {
      return errors::ResourceExhausted("allocator ", allocator->Name(),
                                       " has no ", from.TotalBytes(),
                                       " bytes for it.");
    }
  }
  batch->Begin();
  CopyTensor::ViaDMA(
      NameOf(i), to_host ? ends.context : nullptr,
      to_host ? nullptr : ends.context, to_host ? ends.device : ends.host,
      to_host ? ends.host : ends.device, to_host ? in_place : pinned,
      to_host ? pinned : in_place, &from, to, /*dev_to_dev_stream_index=*/0,
      [this, batch, i](const Status& status) { batch->End(Named(status, i)); },
      /*sync_dst_compute=*/true);
  return OkStatus();
}

std::string RecordCopies::NameOf(int i) const {
  return i < static_cast<int>(names_.size()) ? names_[i]
                                             : strings::StrCat("number ", i);
}

Status RecordCopies::Named(const Status& status, int i) const {
  if (status.ok()) return status;
  return Status(status.code(),
                strings::StrCat("The tensor '", NameOf(i),
                                "' of a record could not be copied between ",
                                device_, " and the host: ", status.message()));
}

}  // namespace staging
}  // namespace tensorflow
