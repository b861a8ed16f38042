// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/buffer_reference.h"

#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/records/lent_tensor.h"

namespace tensorflow {
namespace staging {
namespace {

Status FindOrMake(ResourceMgr* manager, const std::string& container,
                  const std::string& name, const TensorBuffer::Options& options,
                  core::RefCountPtr<TensorBuffer>* buffer) {
  while (true) {
    TensorBuffer* found = nullptr;
    if (manager->Lookup(container, name, &found).ok()) {
      buffer->reset(found);
      return OkStatus();
    }
    buffer->reset(new TensorBuffer(options));
    const Status status =
        manager->CreateUnowned(container, name, buffer->get());
    if (!errors::IsAlreadyExists(status)) return status;
    // Another kernel has created a buffer meanwhile, or the last owner of one
    // has released it and is about to remove it from the manager.
    std::this_thread::yield();
  }
}

// Finds the manager of the buffers that kernels on the device of `ctx` use.
Status FindManager(OpKernelContext* ctx, ResourceMgr** manager) {
  *manager = ctx->resource_manager();
  DeviceNameUtils::ParsedName name = ctx->device()->parsed_name();
  const FunctionLibraryRuntime* library = ctx->function_library();
  if (name.type == DEVICE_CPU || library == nullptr ||
      library->device_mgr() == nullptr) {
    return OkStatus();
  }
  name.type = DEVICE_CPU;
  name.id = 0;
  Device* cpu = nullptr;
  TF_RETURN_IF_ERROR(library->device_mgr()->LookupDevice(
      DeviceNameUtils::ParsedNameToString(name), &cpu));
  *manager = cpu->resource_manager();
  return OkStatus();
}

// Where a Put has the tensors of records, or a Take.
const MemoryTypeVector& MemoryOfRecords(const OpKernel& kernel) {
  return kernel.type_string() == kPutOp ? kernel.input_memory_types()
                                        : kernel.output_memory_types();
}

// Of how many tensors the Put makes a record, or the Take gets one.
int NumTensors(const OpKernel& kernel) {
  bool gives_shares = false;
  TryGetNodeAttr(kernel.def(), kGivesSharesAttr, &gives_shares);
  // The last output gives the shares.
  return static_cast<int>(MemoryOfRecords(kernel).size()) -
         (gives_shares ? 1 : 0);
}

// The indices of the tensors that are in host memory although their record is on
// an accelerator.
std::vector<int> HostTensors(const OpKernel& kernel) {
  // These are on the accelerator once the Put has run.
  std::vector<int> copied;
  TryGetNodeAttr(kernel.def(), kCopiedInputsAttr, &copied);
  const MemoryTypeVector& memory = MemoryOfRecords(kernel);
  std::vector<int> on_host;
  for (int i = 0; i < NumTensors(kernel); ++i) {
    if (memory[i] == HOST_MEMORY && !absl::c_linear_search(copied, i)) {
      on_host.push_back(i);
    }
  }
  return on_host;
}

// Sessions of a server may give their common device other names.
std::string TypeAndNumber(const DeviceNameUtils::ParsedName& name) {
  return strings::StrCat(name.type, ":", name.id);
}

bool TouchesRecords(const OpKernel& kernel) {
  const std::string& op = kernel.type_string();
  return op == kPutOp || op == kTakeOp;
}

}  // namespace

BufferReference::BufferReference(OpKernelConstruction* ctx) {
  options_.place_of = PlaceOf;
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kSharedNameAttr, &options_.name));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kCapacityAttr, &options_.capacity));
  OP_REQUIRES_OK(ctx,
                 ctx->GetAttr(kCapacityBytesAttr, &options_.capacity_bytes));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kDeviceCapacityBytesAttr,
                                   &options_.device_capacity_bytes));
  OP_REQUIRES(ctx, options_.capacity != 0,
              errors::InvalidArgument("capacity of ", ctx->def().name(), " (",
                                      ctx->def().op(),
                                      ") is 0; it must be at least 1, or -1, "
                                      "with which the buffer chooses it."));
  TryGetNodeAttr(ctx->def(), kHandsOverAttr, &hands_over_);
  TryGetNodeAttr(ctx->def(), kBorrowsFromAttr, &borrows_from_);
  OP_REQUIRES(ctx, !options_.name.empty(),
              errors::InvalidArgument(
                  "shared_name of ", ctx->def().op(),
                  " is empty. Give all ops of a stage the same non-empty "
                  "shared_name, which identifies their buffer."));
}

Status BufferReference::Get(OpKernelContext* ctx, const OpKernel& kernel,
                            TensorBuffer** buffer) {
  *buffer = found_.load(std::memory_order_acquire);
  if (*buffer != nullptr) return OkStatus();
  mutex_lock l(mu_);
  if (owner_ == nullptr) TF_RETURN_IF_ERROR(Find(ctx, kernel));
  *buffer = owner_.get();
  return OkStatus();
}

Status BufferReference::Find(OpKernelContext* ctx, const OpKernel& kernel) {
  ResourceMgr* manager = nullptr;
  TF_RETURN_IF_ERROR(FindManager(ctx, &manager));
  ContainerInfo info;
  TF_RETURN_IF_ERROR(info.Init(manager, kernel.def()));
  core::RefCountPtr<TensorBuffer> shared;
  TF_RETURN_IF_ERROR(FindOrMake(info.resource_manager(), info.container(),
                                info.name(), options_, &shared));
  if (TouchesRecords(kernel)) {
    const std::string place = PlaceOfRecords(*ctx, kernel);
    const std::string of_records = shared->KeepRecordsOn(place);
    if (of_records != place) {
      return errors::InvalidArgument(
          kernel.type_string(), " '", kernel.name(), "' of stage '",
          options_.name, "' is on ", place, ", but the stage's records are on ",
          of_records,
          ". Place all ops that put or take records of a stage on one device.");
    }
  }
  owner_ = std::move(shared);
  found_.store(owner_.get(), std::memory_order_release);
  return OkStatus();
}

std::string BufferReference::PlaceOfRecords(const OpKernelContext& ctx,
                                            const OpKernel& kernel) const {
  DeviceNameUtils::ParsedName name = ctx.device()->parsed_name();
  if (!borrows_from_.empty()) {
    DeviceNameUtils::ParseFullName(borrows_from_, &name);
  }
  std::string place = TypeAndNumber(name);
  if (name.type == DEVICE_CPU) return place;
  if (hands_over_ || !borrows_from_.empty()) {
    strings::StrAppend(&place, ", lent to other streams");
  }
  const std::vector<int> on_host = HostTensors(kernel);
  if (!on_host.empty()) {
    strings::StrAppend(&place, ", with tensors ", absl::StrJoin(on_host, ", "),
                       " on the host");
  }
  std::vector<DeviceShare> shares;
  // The kernel has checked its attributes.
  if (ReadShares(kernel.def(), NumTensors(kernel), &shares).ok()) {
    for (const DeviceShare& share : shares) {
      DeviceNameUtils::ParseFullName(share.device, &name);
      strings::StrAppend(&place, ", with tensors ",
                         absl::StrJoin(share.tensors, ", "), " also for ",
                         TypeAndNumber(name));
    }
  }
  return place;
}

}  // namespace staging
}  // namespace tensorflow
