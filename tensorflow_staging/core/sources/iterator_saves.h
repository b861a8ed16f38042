// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_SAVES_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_SAVES_H_

#include <cstdint>
#include <memory>

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/save_moment.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

// A call of IteratorResource::Save: writes the ledger beside the position. It
// waits for a read in progress, as the iterator's own Save does, and no read
// begins until the call ends.
class IteratorSave {
 public:
  IteratorSave(const void* iterator, OpKernelContext* ctx);
  ~IteratorSave();
  IteratorSave(const IteratorSave&) = delete;
  IteratorSave& operator=(const IteratorSave&) = delete;

  // Waits for the iterator's turn.
  Status Await();
  // The caller holds the iterator's lock, so that the ledger fits the state that it
  // takes.
  void Begin();
  // Returns INVALID_ARGUMENT if a checkpoint cannot keep an element.
  Status Write(data::IteratorStateWriter* writer) const;

 private:
  OpKernelContext* const ctx_;
  const std::shared_ptr<Source> source_;
  const core::RefCountPtr<SaveMoment> moment_;
  int64_t turn_ = 0;
  SavedState state_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_SAVES_H_
