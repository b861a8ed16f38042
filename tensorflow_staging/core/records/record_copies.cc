// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_copies.h"

#include <utility>

#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/records/device_memory.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/session_device.h"

namespace tensorflow {
namespace staging {
namespace {

// What errors call the devices.
constexpr char kDevice[] = "The device of the records";

// The two ends of the copies.
struct Ends {
  Device* host;
  Device* device;
  DeviceContext* context;
};

Status FindEnds(const OpKernelContext& ctx, const std::string& device,
                Ends* ends) {
  TF_RETURN_IF_ERROR(FindSessionDevice(ctx, kDevice, device, &ends->device));
  DeviceNameUtils::ParsedName host = ends->device->parsed_name();
  host.type = DEVICE_CPU;
  host.id = 0;
  TF_RETURN_IF_ERROR(FindSessionDevice(
      ctx, kDevice, DeviceNameUtils::ParsedNameToString(host), &ends->host));
  const DeviceBase::AcceleratorDeviceInfo* info =
      ends->device->tensorflow_accelerator_device_info();
  if (info == nullptr || info->default_context == nullptr) {
    return errors::InvalidArgument(
        "Records are on '", device,
        "', which is no accelerator to and from which tensors can be copied.");
  }
  ends->context = info->default_context;
  return OkStatus();
}

// Copies one tensor, and calls `done` when that has ended.
void Copy(const Ends& ends, const std::string& name, const Tensor& from,
          Tensor* to, StatusCallback done) {
  const bool is_variant = from.dtype() == DT_VARIANT;
  if (!is_variant && !DataTypeCanUseMemcpy(from.dtype())) {
    done(errors::InvalidArgument("it is of type ", DataTypeString(from.dtype()),
                                 ", which can only be in host memory."));
    return;
  }
  if (from.NumElements() == 0) {
    done(OkStatus());
    return;
  }
  // CopyTensor allocates variants by itself.
  if (!is_variant) {
    const Status status =
        AllocateOn(ends.device, PinnedMemory(), from.dtype(), from.shape(), to);
    if (!status.ok()) {
      done(status);
      return;
    }
  }
  CopyTensor::ViaDMA(name, ends.context, /*recv_dev_context=*/nullptr,
                     ends.device, ends.host, /*src_alloc_attr=*/{},
                     PinnedMemory(), &from, to, /*dev_to_dev_stream_index=*/0,
                     std::move(done), /*sync_dst_compute=*/true);
}

}  // namespace

Status CopyToHost(OpKernelContext* ctx, const RecordLayout& layout,
                  std::vector<Tensor>* record) {
  Ends ends;
  TF_RETURN_IF_ERROR(FindEnds(*ctx, layout.device, &ends));
  // TensorFlow's copies to the host wait for the kernels.
  TF_RETURN_IF_ERROR(AwaitContent(*record, *ends.device));
  std::vector<Tensor> copies = *record;
  mutex mu;
  Status status;
  BlockingCounter under_way(layout.on_device.size());
  for (const int i : layout.on_device) {
    Copy(ends, strings::StrCat("number ", i), (*record)[i], &copies[i],
         [&layout, &mu, &status, &under_way, i](const Status& copied) {
           if (!copied.ok()) {
             mutex_lock l(mu);
             status.Update(Status(
                 copied.code(),
                 strings::StrCat("The tensor number ", i,
                                 " of a record could not be copied from ",
                                 layout.device,
                                 " to the host: ", copied.message())));
           }
           under_way.DecrementCount();
         });
  }
  under_way.Wait();
  if (status.ok()) *record = std::move(copies);
  return status;
}

}  // namespace staging
}  // namespace tensorflow
