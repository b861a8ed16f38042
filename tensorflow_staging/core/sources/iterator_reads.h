// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_READS_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_READS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

// A call of IteratorResource::GetNext, which calls the methods in this order:
//
//   Await    waits until a staged run may read, and for the iterator's turn;
//   Begin    notes which version is read;
//   Answers  gets an entry that is back, if there is one;
//   End      enters what the iterator has yielded in the ledger.
//
// A read of the program itself first rolls everything back that stages have read
// of the iterator, and so gets the element that it would get without them. In a
// process without a stage, it only looks at two counters.
class IteratorRead {
 public:
  // Must end before what the caller holds of the iterator's state.
  IteratorRead(OpKernelContext* ctx, const void* iterator);
  ~IteratorRead();
  IteratorRead(const IteratorRead&) = delete;
  IteratorRead& operator=(const IteratorRead&) = delete;

  Status Await();

  // The caller holds the iterator's lock, so that the version fits the state that
  // it takes.
  void Begin();

  // Returns whether the call ends here, with `*status`, `*element` and `*is_end`.
  bool Answers(std::vector<Tensor>* element, bool* is_end, Status* status);

  // May replace what the iterator has yielded by what comes before it.
  void End(std::vector<Tensor>* element, bool* is_end, Status* status);
  // Instead of End: the iterator has no dataset.
  void EndWithoutDataset();

 private:
  // The program reads beside a stage: warns once for each iterator if that is often.
  void NoteReadBeside() const;
  // Sets the arguments to `outcome`, which a run has got.
  void Give(const Outcome& outcome, std::vector<Tensor>* element, bool* is_end,
            Status* status);
  // Fails the run, which has got `outcome`, if that is no element.
  void NoteFailure(const Outcome& outcome);
  Status EndStale();
  void EndTurn();
  // Whether a staged run ends with the end of its data.
  bool EndFailsRun() const;

  OpKernelContext* const ctx_;
  // Null if the program itself reads.
  const std::shared_ptr<StagedRun> run_;
  // Null if no stage can read the iterator ahead.
  const std::shared_ptr<Source> source_;
  int64_t turn_ = 0;
  int64_t version_ = 0;
  bool is_inside_ = false;
  Status entered_;
  // With which the run fails at the end of the read, and whether because it is stale.
  // The read leaves the run only with its own end: until then, a run that is
  // cancelled cancels the iterator.
  Status failure_;
  bool fails_as_stale_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_READS_H_
