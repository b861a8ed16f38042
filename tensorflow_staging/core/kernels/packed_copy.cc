// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/packed_copy.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace staging {
namespace {

// Where each tensor begins in the packed bytes: what a GPU's allocator
// guarantees, and more than any kernel needs.
constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Copies the tensors into `packed`, one behind the other.
void Pack(const std::vector<Tensor>& record, const std::vector<int>& indices,
          Tensor* packed) {
  char* target = reinterpret_cast<char*>(packed->flat<int8>().data());
  for (int i : indices) {
    const StringPiece bytes = record[i].tensor_data();
    // A tensor without elements has no memory: its address is null.
    if (bytes.empty()) continue;
    std::memcpy(target, bytes.data(), bytes.size());
    target += Aligned(bytes.size());
  }
}

// Replaces the tensors by those in `block`, which Pack has laid out.
Status Unpack(const Tensor& block, const std::vector<int>& indices,
              std::vector<Tensor>* record) {
  int64_t begin = 0;
  for (int i : indices) {
    Tensor& tensor = (*record)[i];
    const int64_t bytes = tensor.TotalBytes();
    Tensor there;
    TF_RETURN_IF_ERROR(there.BitcastFrom(block.Slice(begin, begin + bytes),
                                         tensor.dtype(), tensor.shape()));
    tensor = std::move(there);
    begin += Aligned(bytes);
  }
  return OkStatus();
}

// A copy that is under way.
struct Copy {
  PackedCopy::Record record;
  PackedCopy::Done done;
  Tensor packed;
  Tensor block;
  // The part of `block` that is copied.
  Tensor target;
};

}  // namespace

void PackedCopy::Start(OpKernelContext* ctx, Record record, Done done) const {
  int64_t bytes = 0;
  for (int i : indices_) bytes += Aligned(record[i].TotalBytes());
  // Tensors without elements have no memory.
  if (bytes == 0) return done(OkStatus(), std::move(record));
  auto copy = std::make_shared<Copy>();
  AllocatorAttributes pinned;
  pinned.set_on_host(true);
  pinned.set_gpu_compatible(true);
  Status status =
      ctx->allocate_temp(DT_INT8, TensorShape({bytes}), &copy->packed, pinned);
  bool in_use = false;
  if (status.ok()) status = blocks_->Get(ctx, bytes, &copy->block, &in_use);
  if (!status.ok()) return done(status, {});
  Pack(record, indices_, &copy->packed);
  copy->record = std::move(record);
  copy->done = std::move(done);
  copy->target = copy->block.Slice(0, bytes);
  ctx->op_device_context()->CopyCPUTensorToDevice(
      &copy->packed, static_cast<Device*>(ctx->device()), &copy->target,
      [this, copy](const Status& copied) {
        Status status = copied;
        if (status.ok()) status = Unpack(copy->block, indices_, &copy->record);
        copy->done(status, std::move(copy->record));
      },
      /*sync_dst_compute=*/in_use);
}

}  // namespace staging
}  // namespace tensorflow
