// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_upload.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow_staging/core/records/copy_event.h"
#include "tensorflow_staging/core/records/kernel_stream.h"
#include "tensorflow_staging/core/records/parallel_ranges.h"
#include "tensorflow_staging/core/records/upload_plan.h"
#include "tensorflow_staging/core/records/upload_stream.h"

namespace tensorflow {
namespace staging {
namespace {

// The GPU copies a chunk while the host packs the next one. Chosen, not
// measured.
constexpr int64_t kChunkBytes = int64_t{4} << 20;

// Another thread is worth its start from about that many bytes on. Chosen, not
// measured.
constexpr int64_t kLeastBytesOfAThread = int64_t{256} << 10;

char* Memory(Tensor* tensor) {
  return static_cast<char*>(DMAHelper::base(tensor));
}

// Replaces the tensors of `parts` by those in `block`.
Status MoveTo(const Tensor& block, const std::vector<UploadPlan::Part>& parts,
              std::vector<Tensor>* record) {
  for (const UploadPlan::Part& part : parts) {
    Tensor& tensor = (*record)[part.index];
    Tensor there;
    TF_RETURN_IF_ERROR(
        there.BitcastFrom(block.Slice(part.offset, part.offset + part.bytes),
                          tensor.dtype(), tensor.shape()));
    tensor = std::move(there);
  }
  return OkStatus();
}

// What must live until the copies of a record are over.
struct Copied {
  Tensor packed;
  std::vector<Tensor> direct;
  Tensor block;
};

}  // namespace

Status RecordUpload::Queue(OpKernelContext* ctx,
                           std::vector<Tensor>* record) const {
  const UploadPlan plan = PlanUpload(*record, indices_);
  if (plan.bytes == 0) return OkStatus();
  KernelStream kernels;
  TF_RETURN_IF_ERROR(KernelStream::Of(*ctx->device(), &kernels));
  const UploadStream stream = UploadStream::For(kernels);
  std::shared_ptr<CopyEvent> event;
  TF_RETURN_IF_ERROR(CopyEvent::Make(kernels, &event));

  Copied copied;
  bool in_use = false;
  if (plan.packed_bytes > 0) {
    AllocatorAttributes pinned;
    pinned.set_on_host(true);
    pinned.set_gpu_compatible(true);
    TF_RETURN_IF_ERROR(ctx->allocate_temp(
        DT_INT8, TensorShape({plan.packed_bytes}), &copied.packed, pinned));
  }
  TF_RETURN_IF_ERROR(
      blocks_->Get(ctx, plan.bytes, event, &copied.block, &in_use));
  for (const UploadPlan::Part& part : plan.direct) {
    copied.direct.push_back((*record)[part.index]);
  }

  char* const target = Memory(&copied.block);
  if (in_use) stream.WaitForKernels();
  for (const UploadPlan::Part& part : plan.direct) {
    stream.Copy(part.source, target + part.offset, part.bytes);
  }
  char* const packed = Memory(&copied.packed);
  for (int64_t begin = 0; begin < plan.packed_bytes; begin += kChunkBytes) {
    const int64_t end = std::min(begin + kChunkBytes, plan.packed_bytes);
    InParallelRanges(*ctx->device()->tensorflow_cpu_worker_threads(),
                     end - begin, kLeastBytesOfAThread,
                     [&](int64_t first, int64_t last) {
                       PackRange(plan, begin + first, begin + last, packed);
                     });
    stream.Copy(packed + begin, target + begin, end - begin);
  }
  Status status = MoveTo(copied.block, plan.packed, record);
  status.Update(MoveTo(copied.block, plan.direct, record));
  status.Update(stream.End(std::move(event), [copied = std::move(copied)] {}));
  return status;
}

}  // namespace staging
}  // namespace tensorflow
