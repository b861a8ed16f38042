// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_CHANGES_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_CHANGES_H_

#include <memory>
#include <optional>
#include <vector>

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/run_holds.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

// A change of an iterator's dataset or position, by an initialiser or a restore
// that has succeeded so far: IteratorResource has made the new iterator. The
// stages that have read the old one drop their records of it. A failed
// initialiser changes nothing.
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

  // Reads the records behind the position. An error says that they are damaged
  // or do not fit a stage that reads the iterator; then nothing may change.
  Status Prepare();

  // Call this with the iterator's lock, after its state has been replaced.
  void Apply();

  // Whether the reads in progress of the state before the change are all staged,
  // of which there are `reads`: then they may be cancelled, because their
  // records would be dropped.
  bool MayCancelReads(int reads) const {
    return staged_reads_ > 0 && reads <= staged_reads_;
  }

  // Lets what waited for the change go on. Call this without a lock.
  void Finish();

 private:
  IteratorChange(const void* iterator, OpKernelContext* ctx,
                 bool is_initialiser);

  // Keeps the position for the case that the initialiser of its dataset runs
  // again before the program has got anything.
  void HoldPosition();

  const void* iterator_;
  std::shared_ptr<Source> source_;
  OpKernelContext* ctx_;
  bool is_initialiser_;
  // For Initialise with a position.
  struct EndClaim {
    void operator()(Source* source) const { source->EndClaim(); }
  };
  std::unique_ptr<Source, EndClaim> claim_;
  // The reader refers to the tensor, which the source may release meanwhile.
  std::optional<Source::HeldPosition> held_;
  std::unique_ptr<data::IteratorStateReader> held_position_;
  data::IteratorStateReader* position_ = nullptr;
  // For Restore: what is held once the restore has succeeded.
  std::optional<Source::HeldPosition> hold_;
  Source::RestoredRecords restored_;
  std::vector<Source::Element> given_back_;
  int staged_reads_ = 0;
  std::vector<SourceReader::Due> due_;
  core::RefCountPtr<RunHolds> holds_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_CHANGES_H_
