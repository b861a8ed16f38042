// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_CHANGES_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_CHANGES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/ledger.h"
#include "tensorflow_staging/core/sources/restored_position.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

// Reads a position from the tensor that SerializeIterator writes. `position` must
// live as long as the reader.
Status MakeReader(const Tensor& position,
                  std::unique_ptr<data::IteratorStateReader>* reader);

// A change of an iterator's dataset or position, by an initialiser or a restore
// that has succeeded so far: IteratorResource has made the new iterator. What
// stages have read of the old one is void. A failed initialiser changes nothing.
class IteratorChange {
 public:
  // An initialiser gives the iterator a dataset.
  static IteratorChange Initialise(const void* iterator, OpKernelContext* ctx);
  // A restore gives it a position. `reader` must live as long as the change.
  static IteratorChange Restore(const void* iterator, OpKernelContext* ctx,
                                data::IteratorStateReader* reader);

  // For Initialise: the position that was restored for this dataset; null if
  // none was. For Restore: its position.
  data::IteratorStateReader* position() { return position_; }

  // For Restore: whether the position waits for the initialiser of its dataset,
  // because the iterator has none, or another and the op asks for that
  // (kAwaitsInitializerAttr). Then nothing changes now.
  bool IsHeld(bool is_initialised);

  // Reads the ledger behind the position. An error says that it is damaged; then
  // nothing may change.
  Status Prepare();

  // Call this with the iterator's lock, after its state has been replaced.
  void Apply();

  // Whether the reads in progress of the state before the change, of which there
  // are `reads`, are staged: then they may be cancelled, because what they get is
  // void. Staged reads take turns, so there is one at most. Count them before this
  // call.
  bool MayCancelReads(int64_t reads) const {
    return reads == 1 && source_->IsLastVersionRead();
  }

  // Lets what the change concerns go on. Call this without a lock.
  void Finish();

 private:
  using Position = RestoredPosition::Position;

  IteratorChange(const void* iterator, OpKernelContext* ctx,
                 bool is_initialiser);

  // Finds the position for the dataset that the initialiser gives, if no step has
  // used what comes after it, and keeps stages from reading until the end.
  std::optional<Position> Claim();
  bool IsInUse(const Position& position) const;

  std::shared_ptr<Source> source_;
  OpKernelContext* ctx_;
  bool is_initialiser_;
  // For Initialise with a position.
  struct EndClaim {
    void operator()(Source* source) const { source->EndClaim(); }
  };
  std::unique_ptr<Source, EndClaim> claim_;
  // What is to be restored again if the initialiser of the dataset runs next.
  std::optional<Position> restored_;
  std::unique_ptr<data::IteratorStateReader> restored_reader_;
  data::IteratorStateReader* position_ = nullptr;
  Outcomes outcomes_;
  std::unique_ptr<RollBack> roll_back_ = std::make_unique<RollBack>();
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_CHANGES_H_
