// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_loan.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/session_device.h"

namespace tensorflow {
namespace staging {

namespace {

// Returns INVALID_ARGUMENT unless `device`, the value of an attribute, is the full
// name of a device.
Status CheckIsDevice(const OpKernelConstruction& ctx, const char* attribute,
                     const std::string& device) {
  DeviceNameUtils::ParsedName name;
  if (DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
      name.has_id) {
    return OkStatus();
  }
  return errors::InvalidArgument(attribute, " of ", ctx.def().name(), " is '",
                                 device, "', which is no device's full name.");
}

}  // namespace

Status RecordLoan::Read(const OpKernelConstruction& ctx,
                        std::unique_ptr<RecordLoan>* loan) {
  std::string lender;
  if (!TryGetNodeAttr(ctx.def(), kBorrowsFromAttr, &lender)) return OkStatus();
  if (ctx.device_type() == DEVICE_CPU) {
    return errors::InvalidArgument(
        kBorrowsFromAttr, " of ", ctx.def().name(),
        " is set on a CPU; it is for Takes on accelerators.");
  }
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const DataType dtype = ctx.output_type(i);
    if (ctx.output_memory_types()[i] == DEVICE_MEMORY &&
        !DataTypeCanUseMemcpy(dtype) && !DataTypeAlwaysOnHost(dtype)) {
      return errors::InvalidArgument(
          kBorrowsFromAttr, " of ", ctx.def().name(), " is set, but output ", i,
          " (", DataTypeString(dtype), ") cannot be lent.");
    }
  }
  TF_RETURN_IF_ERROR(CheckIsDevice(ctx, kBorrowsFromAttr, lender));
  loan->reset(new RecordLoan(std::move(lender)));
  return OkStatus();
}

Status RecordLoan::Lend(OpKernelContext* ctx, std::vector<Tensor>* record) {
  absl::call_once(once_, [&] { status_ = FindBorrower(ctx); });
  TF_RETURN_IF_ERROR(status_);
  for (size_t i = 0; i < record->size(); ++i) {
    Tensor& tensor = (*record)[i];
    if (ctx->output_memory_type(i) != DEVICE_MEMORY ||
        !DataTypeCanUseMemcpy(tensor.dtype()) || tensor.NumElements() == 0) {
      continue;
    }
    tensor = LendTensor(std::move(tensor), borrower_, [](Tensor) {});
  }
  return OkStatus();
}

Status RecordLoan::FindBorrower(OpKernelContext* ctx) {
  TF_RETURN_IF_ERROR(KernelStream::Of(*ctx->device(), &borrower_));
  Device* device = nullptr;
  TF_RETURN_IF_ERROR(
      FindSessionDevice(*ctx, kBorrowsFromAttr, lender_, &device));
  KernelStream lender;
  TF_RETURN_IF_ERROR(KernelStream::Of(*device, &lender));
  if (!lender.IsOnSameGpu(borrower_)) {
    return errors::InvalidArgument("Take '", ctx->op_kernel().name(), "' on ",
                                   ctx->device()->name(),
                                   " cannot borrow records from ", lender_,
                                   ", because that is another GPU.");
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
