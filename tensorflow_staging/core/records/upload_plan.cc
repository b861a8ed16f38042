// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/upload_plan.h"

#include <algorithm>
#include <cstring>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace staging {
namespace {

// Where each tensor begins: what a GPU's allocator guarantees, and more than
// any kernel needs.
constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool IsPinned(const Tensor& tensor) {
  // A slice does not know what memory it is in.
  ::tensorflow::TensorBuffer* buffer =
      const_cast<::tensorflow::TensorBuffer*>(DMAHelper::buffer(&tensor));
  return buffer->root_buffer()->GetMemoryType() ==
         AllocatorMemoryType::kHostPinned;
}

// Gives the parts their places from `begin` on, and returns their end.
int64_t Place(int64_t begin, std::vector<UploadPlan::Part>* parts) {
  for (UploadPlan::Part& part : *parts) {
    part.offset = begin;
    begin += Aligned(part.bytes);
  }
  return begin;
}

}  // namespace

UploadPlan PlanUpload(const std::vector<Tensor>& record,
                      const std::vector<int>& indices) {
  UploadPlan plan;
  for (int i : indices) {
    const StringPiece bytes = record[i].tensor_data();
    // A tensor without elements has no memory.
    if (bytes.empty()) continue;
    const int64_t size = bytes.size();
    const bool direct =
        size >= UploadPlan::kLeastDirectBytes && IsPinned(record[i]);
    (direct ? plan.direct : plan.packed)
        .push_back({i, bytes.data(), size, /*offset=*/0});
  }
  plan.packed_bytes = Place(0, &plan.packed);
  plan.bytes = Place(plan.packed_bytes, &plan.direct);
  return plan;
}

void PackRange(const UploadPlan& plan, int64_t begin, int64_t end,
               char* packed) {
  const auto after =
      std::upper_bound(plan.packed.begin(), plan.packed.end(), begin,
                       [](int64_t offset, const UploadPlan::Part& part) {
                         return offset < part.offset;
                       });
  // The part before may reach into the range.
  for (auto part = after - 1; part != plan.packed.end(); ++part) {
    if (part->offset >= end) break;
    const int64_t first = std::max(begin, part->offset);
    const int64_t last = std::min(end, part->offset + part->bytes);
    if (first >= last) continue;
    std::memcpy(packed + first, part->source + (first - part->offset),
                last - first);
  }
}

}  // namespace staging
}  // namespace tensorflow
