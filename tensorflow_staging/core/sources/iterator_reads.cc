// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_reads.h"

#include <optional>
#include <string>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow_staging/core/sources/run_holds.h"

namespace tensorflow {
namespace staging {

SourceReader::Due NoteHandle(OpKernelContext* ctx, const void* iterator) {
  const std::shared_ptr<StagedRun> run =
      StagedRun::Find(ctx->cancellation_manager());
  // Later runs of a stage get the same handles.
  if (run == nullptr || !run->keeps_elements()) return [] {};
  const std::shared_ptr<Source> source = Source::Of(iterator);
  core::RefCountPtr<RunHolds> saving;
  std::vector<SourceReader::Due> due;
  // What waits for it, it gets when it reads.
  source->AddReader(run->stage(), &saving);
  run->NoteHandle(source);
  if (saving != nullptr) {
    due.push_back(saving->Hold(run->stage()));
    run->Abandon();
  }
  return [due = std::move(due)]() mutable {
    for (SourceReader::Due& callback : due) callback();
  };
}

IteratorRead::~IteratorRead() {
  for (const auto& reader : held_) reader->EndHold(this);
  LeaveRun(OkStatus());
}

void IteratorRead::LeaveRun(const Status& failure) {
  if (!is_inside_) return;
  is_inside_ = false;
  --source_->staged_reads();
  {
    mutex_lock l(run_->mu_);
    --run_->inside_;
    run_->left_.NotifyAll();
  }
  if (!failure.ok()) run_->Fail(failure);
}

void IteratorRead::End(const Status& status, const std::vector<Tensor>& element,
                       bool end_of_sequence) {
  if (!status.ok()) {
    LeaveRun(status);
  } else if (!end_of_sequence) {
    if (run_ == nullptr) return WarnOfStage();
    Keep(element, Source::NextOrder());
  } else if (ctx_->op_kernel().type_string() != "IteratorGetNextAsOptional") {
    LeaveRun(errors::OutOfRange("End of sequence"));
  }
}

void IteratorRead::WarnOfStage() {
  const std::shared_ptr<Source> source = Source::Find(iterator_);
  if (source == nullptr) return;
  const std::string stage = source->ReaderToWarnOf();
  if (stage.empty()) return;
  const OpKernel& op = ctx_->op_kernel();
  LOG(WARNING) << "Node '" << op.name() << "' (" << op.type_string()
               << ") has read an iterator that stage '" << stage
               << "' reads ahead of the steps: it got the element after those "
                  "of the records that the stage has made, and the stage goes "
                  "on after it. To use the element of a record, use the "
                  "outputs of the get_next() that the stage reads; to read "
                  "elements of its own, give the node another iterator. "
                  "SmartStage leaves an iterator in the step if such a node is "
                  "in the graph before the stages start.";
}

void IteratorRead::Begin() {
  if (run_ == nullptr) {
    const auto source = Source::AnyKept() ? Source::Find(iterator_) : nullptr;
    if (source == nullptr) return;
    version_ = source->version();
    source->ReleasePosition(version_);
    return;
  }
  source_ = Source::Of(iterator_);
  if (Source::AnyKept() && source_->IsClaimed()) {
    is_stale_ = is_claimed_ = true;
    mutex_lock l(run_->mu_);
    run_->is_aborted_ = true;
    return;
  }
  version_ = source_->version();
  core::RefCountPtr<RunHolds> saving;
  status_ = run_->MayRead(source_.get(), &saving, &due_);
  // A run that changes or saves the iterator held only those that were readers
  // then.
  const core::RefCountPtr<RunHolds> changing = source_->changing();
  if (changing != nullptr) due_.push_back(changing->Hold(run_->stage()));
  EnterRun(saving != nullptr);
  if (saving == nullptr) return;
  if (is_stale_) {
    due_.push_back(saving->Hold(run_->stage()));
  } else {
    saving->NoteLateRead(run_->stage()->name());
  }
}

void IteratorRead::EnterRun(bool is_being_saved) {
  // Before the run's lock, which comes after the source's and the buffer's.
  const bool has_changed = source_->changed_at() > run_->admitted_at_;
  mutex_lock l(run_->mu_);
  // The saved position would come before the element of a record that the same
  // session's run saves with another iterator. A run that has read something and
  // does not keep it must go on.
  const bool yields_to_save =
      is_being_saved && (run_->keeps_elements() || run_->reads_.empty());
  run_->AddRead(source_, version_);
  // The element would be lost: the record that it belongs to is stale.
  is_stale_ = has_changed || yields_to_save || run_->is_aborted_ ||
              run_->reads_.IsStale();
  if (is_stale_) {
    run_->is_aborted_ = true;
    return;
  }
  status_.Update(run_->failure_);
  if (!status_.ok()) return;
  ++run_->inside_;
  ++source_->staged_reads();
  is_inside_ = true;
}

bool IteratorRead::Answers(std::vector<Tensor>* element, Status* status) {
  for (SourceReader::Due& due : due_) due();
  *status = status_;
  if (!status->ok()) return true;
  if (is_stale_) {
    // Otherwise the run would be repeated all the time until then.
    if (is_claimed_) source_->AwaitEndOfClaims(ctx_->cancellation_manager());
    // The error cancels the run, and a cancelled run cancels for good the
    // iterators that it is reading.
    mutex_lock l(run_->mu_);
    while (run_->inside_ > 0) run_->left_.Wait(&run_->mu_);
    *status =
        errors::Aborted("Stage '", run_->stage()->name(),
                        "' reads an iterator that has been initialised "
                        "again or is being saved, so its run is repeated.");
    return true;
  }
  if (!Source::AnyKept()) return false;
  const std::shared_ptr<Source> source = Source::Find(iterator_);
  if (source == nullptr) return false;
  if (run_ == nullptr) HoldStages(source.get());
  *status = source->CheckNoneWaits(run_ == nullptr ? nullptr : run_->stage());
  if (!status->ok()) return true;
  std::optional<Source::OrderedElement> given_back =
      source->TakeGivenBack(version_);
  if (!given_back.has_value()) return false;
  *element = std::move(given_back->tensors);
  Keep(*element, given_back->order);
  return true;
}

void IteratorRead::HoldStages(Source* source) {
  for (core::RefCountPtr<SourceReader>& reader : source->Readers()) {
    if (!reader->YieldsToOthers()) continue;
    // A run that does not end may be waiting for this read; then this gets what
    // comes after the stage's elements.
    if (!reader->AwaitPause(this, ctx_->cancellation_manager()).ok()) continue;
    reader->GiveBackElements();
    held_.push_back(std::move(reader));
  }
}

}  // namespace staging
}  // namespace tensorflow
