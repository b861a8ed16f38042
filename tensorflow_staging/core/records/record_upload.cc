// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_upload.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/compat/gpu_stream.h"
#include "tensorflow_staging/core/records/device_memory.h"
#include "tensorflow_staging/core/records/kernel_stream.h"
#include "tensorflow_staging/core/records/upload_plan.h"

namespace tensorflow {
namespace staging {
namespace {

namespace se = ::stream_executor;

// Returns the stream on which records are copied from the host to the GPU whose
// kernels run on `kernels`. It is not TensorFlow's stream for copies from the
// host: the copies of steps wait there for the steps' kernels, and so would all
// that is behind them.
//
// What is queued here waits only for kernels that were queued before it, and
// kernels wait only for copies that were queued before them (CopyEvent), so
// they never wait for each other. Streams live as long as the process. Copies
// of several callers may alternate. Null if the GPU has no stream.
se::Stream* UploadStream(const KernelStream& kernels) {
  static auto* const mu = new mutex;
  static auto* const streams = new std::map<se::Stream*, se::Stream*>;
  mutex_lock l(*mu);
  se::Stream*& uploads = (*streams)[kernels.stream()];
  if (uploads == nullptr) {
    uploads = compat::NewStream(kernels.stream()->parent()).release();
  }
  return uploads;
}

// Queues a copy from pinned memory, which must live until the copy is over.
Status Upload(const void* host, void* device, int64_t bytes,
              se::Stream* uploads) {
  se::DeviceMemoryBase target(device, bytes);
  return compat::Copy(host, &target, bytes, uploads);
}

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

// Sets `*packed` to host memory from which the GPU copies.
Status AllocatePacked(DeviceBase* gpu, int64_t bytes, IfFull if_full,
                      Tensor* packed) {
  const TensorShape shape({bytes});
  const Status status = AllocateOn(gpu, PinnedMemory(), DT_INT8, shape, packed,
                                   /*after_waiting=*/false);
  if (status.ok() || if_full == IfFull::kGiveUp) return status;
  // The driver makes a detour if the memory is not pinned.
  AllocatorAttributes pageable;
  pageable.set_on_host(true);
  return AllocateOn(gpu, pageable, DT_INT8, shape, packed);
}

// What must live until the copies of a record are over.
struct Copied {
  Tensor packed;
  std::vector<Tensor> direct;
  Tensor block;
};

}  // namespace

Status RecordUpload::Queue(DeviceBase* gpu, IfFull if_full,
                           std::vector<Tensor>* record) const {
  const UploadPlan plan = PlanUpload(*record, indices_);
  if (plan.bytes == 0) return OkStatus();
  KernelStream kernels;
  TF_RETURN_IF_ERROR(KernelStream::Of(*gpu, &kernels));
  se::Stream* const uploads = UploadStream(kernels);
  if (uploads == nullptr) {
    return errors::Internal("The GPU has no stream for the copy of a record.");
  }
  std::shared_ptr<CopyEvent> event;
  TF_RETURN_IF_ERROR(CopyEvent::Make(kernels, &event));

  Copied copied;
  bool in_use = false;
  if (plan.packed_bytes > 0) {
    TF_RETURN_IF_ERROR(
        AllocatePacked(gpu, plan.packed_bytes, if_full, &copied.packed));
  }
  TF_RETURN_IF_ERROR(
      blocks_->Get(gpu, plan.bytes, if_full, event, &copied.block, &in_use));
  for (const UploadPlan::Part& part : plan.direct) {
    copied.direct.push_back((*record)[part.index]);
  }

  char* const target = Memory(&copied.block);
  // What has been queued needs its memory until it is over, so no error ends this.
  Status status;
  if (in_use) status.Update(compat::WaitFor(kernels.stream(), uploads));
  for (const UploadPlan::Part& part : plan.direct) {
    status.Update(
        Upload(part.source, target + part.offset, part.bytes, uploads));
  }
  char* const packed = Memory(&copied.packed);
  const DeviceBase::CpuWorkerThreads& threads =
      *gpu->tensorflow_cpu_worker_threads();
  for (int64_t begin = 0; begin < plan.packed_bytes; begin += kChunkBytes) {
    const int64_t end = std::min(begin + kChunkBytes, plan.packed_bytes);
    const int64_t share =
        (end - begin + threads.num_threads - 1) / threads.num_threads;
    threads.workers->TransformRangeConcurrently(
        std::max(share, kLeastBytesOfAThread), end - begin,
        [&](int64_t first, int64_t last) {
          PackRange(plan, begin + first, begin + last, packed);
        });
    status.Update(Upload(packed + begin, target + begin, end - begin, uploads));
  }
  status.Update(MoveTo(copied.block, plan.packed, record));
  status.Update(MoveTo(copied.block, plan.direct, record));
  status.Update(event->RecordOn(uploads));
  KernelStream(uploads, kernels.events())
      .ThenCall([event, copied = std::move(copied)] { event->SetOver(); });
  if (!uploads->ok()) {
    status.Update(errors::Internal(
        "The GPU has refused the copy of a record, or an earlier one."));
  }
  return status;
}

}  // namespace staging
}  // namespace tensorflow
