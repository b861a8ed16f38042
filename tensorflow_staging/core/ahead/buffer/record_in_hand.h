// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_RECORD_IN_HAND_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_RECORD_IN_HAND_H_

#include <optional>
#include <string>
#include <utility>

#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer_handle.h"

namespace tensorflow {
namespace staging {

// A record that a step has taken and not yet used. A step that asks whether there
// is an element, as by get_next_as_optional(), takes the record in one function and
// uses it in another, the branch of a conditional, where the placement of what
// uses it is known:
//
//   buffer ──▶ StepBufferTakeIfAny ──┬─ has_record ──▶ If
//                                    └─ record ──▶ its then_branch:
//                                                    StepBufferTake ──▶ ...
class RecordInHand : public ResourceBase {
 public:
  RecordInHand(StepBufferRef buffer, TensorBuffer::Record record)
      : buffer_(std::move(buffer)), record_(std::move(record)) {}

  StepBuffer* buffer() const { return buffer_.get(); }

  // Returns the record; nothing if it was used before.
  std::optional<TensorBuffer::Record> Use() TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return std::exchange(record_, std::nullopt);
  }

  std::string DebugString() const override {
    return "A record that a step has taken.";
  }

 private:
  const StepBufferRef buffer_;
  mutex mu_;
  std::optional<TensorBuffer::Record> record_ TF_GUARDED_BY(mu_);
};

// Returns the record whose handle is `tensor`, the input of an op; null if that is
// a handle of something else.
inline RecordInHand* RecordInHandOf(const Tensor& tensor) {
  if (tensor.NumElements() != 1) return nullptr;
  const ResourceHandle& handle = tensor.flat<ResourceHandle>()(0);
  if (!handle.IsRefCounting() ||
      handle.hash_code() != TypeIndex::Make<RecordInHand>().hash_code()) {
    return nullptr;
  }
  StatusOr<RecordInHand*> found = handle.GetResource<RecordInHand>();
  return found.ok() ? *found : nullptr;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_RECORD_IN_HAND_H_
