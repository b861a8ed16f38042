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

// The run of `ctx`, if it is a staged one, has got the handle of an iterator, so
// its stage is a reader: it may read in a conditional only, later, while the
// iterator is being saved. Call the returned function without locks.
SourceReader::Due NoteHandle(OpKernelContext* ctx, const void* iterator);

// A call of IteratorResource::GetNext, which calls the methods in this order.
// Outside of staged runs, all that it costs is to look the run up among those
// in progress, if there are any.
class IteratorRead {
 public:
  IteratorRead(OpKernelContext* ctx, const void* iterator)
      : ctx_(ctx),
        iterator_(iterator),
        run_(StagedRun::Find(ctx->cancellation_manager())) {}
  ~IteratorRead();
  IteratorRead(const IteratorRead&) = delete;
  IteratorRead& operator=(const IteratorRead&) = delete;

  // Waits until a staged run may read.
  Status Await() {
    return run_ == nullptr ? OkStatus()
                           : run_->AwaitAdmission(ctx_->cancellation_manager());
  }

  // Notes which version is read. The caller holds the iterator's lock, so that
  // the version fits the state that it takes.
  void Begin();

  // Call this without a lock. Returns whether the call ends here: with an error
  // in `*status`, or with an element in `*element` that was given back. Outside
  // of staged runs, stages that yield give back what they have read, and read on
  // when this read has ended.
  bool Answers(std::vector<Tensor>* element, Status* status);

  // The iterator has yielded an element, or an error or its end, which fail the
  // run. Call this without a lock, since it waits for other reads then.
  void End(const Status& status, const std::vector<Tensor>& element,
           bool end_of_sequence);

 private:
  // Adds the read to the run, or finds that the run is to be repeated.
  // `is_being_saved` if the iterator is, by a session's run that did not pause
  // the stage.
  void EnterRun(bool is_being_saved);
  // Warns if a stage reads the iterator, too, and has kept what it has read.
  void WarnOfStage();
  void HoldStages(Source* source);
  void Keep(const std::vector<Tensor>& element, int64_t order) {
    if (run_ != nullptr && run_->keeps_elements()) {
      run_->Keep({{source_, version_}, element, order});
    }
  }

  // Leaves the run, which fails unless `failure` is OK.
  void LeaveRun(const Status& failure);

  OpKernelContext* const ctx_;
  const void* const iterator_;
  const std::shared_ptr<StagedRun> run_;
  // The stages that read on when this read has ended.
  std::vector<core::RefCountPtr<SourceReader>> held_;
  int64_t version_ = Source::kNoDataset;
  // Of a staged run.
  std::shared_ptr<Source> source_;
  Status status_;
  std::vector<SourceReader::Due> due_;
  bool is_stale_ = false;
  bool is_claimed_ = false;
  bool is_inside_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_READS_H_
