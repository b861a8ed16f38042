// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_reads.h"

#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/sources/roll_back.h"

namespace tensorflow {
namespace staging {
namespace {

// IsCancelled becomes true only after the callbacks of a cancellation, one of which
// may have ended the read.
bool HasBeenCancelled(CancellationManager* manager) {
  return manager->IsCancelling() || manager->IsCancelled();
}

// A program that reads an iterator beside a stage so often does it in its steps.
constexpr int64_t kOften = 10;

// Returns the source of an iterator that `run` reads, or the program, if that is
// null. Null if no stage can read the iterator ahead: once there is a stage, its first
// read has to wait for a read of the program that has begun before it.
std::shared_ptr<Source> SourceOf(const void* iterator, const StagedRun* run) {
  if (run != nullptr) {
    std::shared_ptr<Source> source = Source::Of(iterator);
    source->NoteReadAhead();
    return source;
  }
  if (!Stage::AnyExists() && !Source::AnyIsReadAhead()) return nullptr;
  return Source::Of(iterator);
}

}  // namespace

IteratorRead::IteratorRead(OpKernelContext* ctx, const void* iterator)
    : ctx_(ctx),
      run_(StagedRun::Find(ctx->cancellation_manager())),
      source_(SourceOf(iterator, run_.get())) {}

IteratorRead::~IteratorRead() {
  if (source_ == nullptr) return;
  EndTurn();
  if (std::exchange(is_inside_, false)) run_->LeaveRead();
  // What fails the run cancels it, and with it other reads that have begun, so
  // these come first.
  if (fails_as_stale_) {
    run_->AwaitReads();
  } else if (!failure_.ok()) {
    run_->Fail(failure_);
  }
}

Status IteratorRead::Await() {
  if (source_ == nullptr) return OkStatus();
  if (run_ != nullptr) {
    TF_RETURN_IF_ERROR(run_->AwaitAdmission(ctx_->cancellation_manager()));
  }
  TF_ASSIGN_OR_RETURN(turn_, source_->AwaitTurn(ctx_->cancellation_manager()));
  return OkStatus();
}

void IteratorRead::Begin() {
  if (source_ == nullptr) return;
  version_ = source_->version();
  source_->NoteRead(turn_);
  if (run_ == nullptr) return;
  entered_ = run_->EnterRead();
  if (!entered_.ok()) return;
  source_->NoteStagedRead(turn_);
  is_inside_ = true;
}

bool IteratorRead::Answers(std::vector<Tensor>* element, bool* is_end,
                           Status* status) {
  if (source_ == nullptr) return false;
  if (run_ == nullptr) {
    if (!source_->is_read_ahead()) return false;
    RollBack roll_back;
    if (roll_back.GiveBackAll(source_)) NoteReadBeside();
  } else if (!entered_.ok()) {
    *status = entered_;
    return true;
  } else if (run_->IsStale()) {
    *status = EndStale();
    return true;
  }
  std::shared_ptr<const Outcome> outcome;
  const Source::Got got = source_->TakeBack(
      version_, run_ == nullptr ? nullptr : run_->reads(), &outcome);
  if (got == Source::Got::kEntry) {
    Give(*outcome, element, is_end, status);
    return true;
  }
  // A read of the program goes on with the iterator that it has found.
  if (got == Source::Got::kNothing || run_ == nullptr) return false;
  *status = EndStale();
  return true;
}

void IteratorRead::End(std::vector<Tensor>* element, bool* is_end,
                       Status* status) {
  if (source_ != nullptr && run_ == nullptr && status->ok()) source_->NoteUse();
  if (run_ == nullptr) return;
  // What the run's end has cut short is nothing that the iterator has yielded,
  // even if the iterator takes it for the end of its data.
  if ((!status->ok() || *is_end) &&
      HasBeenCancelled(ctx_->cancellation_manager())) {
    status->Update(errors::Cancelled("The read was cancelled."));
    failure_ = *status;
    return;
  }
  auto entered = std::make_shared<Outcome>();
  entered->status = *status;
  entered->is_end = *is_end;
  if (status->ok() && !*is_end) entered->element = *element;
  std::shared_ptr<const Outcome> outcome = entered;
  if (source_->Enter(version_, run_->reads(), &outcome) !=
      Source::Got::kEntry) {
    *status = EndStale();
  } else if (outcome == entered) {
    NoteFailure(*outcome);
  } else {
    Give(*outcome, element, is_end, status);
  }
}

void IteratorRead::EndWithoutDataset() {
  if (run_ == nullptr) return;
  std::vector<Tensor> element;
  bool is_end = false;
  Status status = errors::FailedPrecondition(
      "GetNext() failed because the iterator has not been initialized.");
  End(&element, &is_end, &status);
}

void IteratorRead::Give(const Outcome& outcome, std::vector<Tensor>* element,
                        bool* is_end, Status* status) {
  *status = outcome.status;
  *is_end = outcome.is_end;
  *element = outcome.element;
  if (run_ != nullptr) NoteFailure(outcome);
}

void IteratorRead::NoteFailure(const Outcome& outcome) {
  if (!outcome.status.ok()) {
    failure_ = outcome.status;
  } else if (outcome.is_end && EndFailsRun()) {
    failure_ = errors::OutOfRange("End of sequence");
  }
}

bool IteratorRead::EndFailsRun() const {
  return ctx_->op_kernel().type_string() != "IteratorGetNextAsOptional";
}

Status IteratorRead::EndStale() {
  fails_as_stale_ = true;
  GiveBack(run_->reads());
  return run_->StaleStatus();
}

void IteratorRead::EndTurn() {
  if (turn_ != 0) source_->EndTurn(std::exchange(turn_, 0));
}

void IteratorRead::NoteReadBeside() const {
  if (source_->CountReadBeside() != kOften) return;
  const OpKernel& op = ctx_->op_kernel();
  LOG(WARNING) << "Node '" << op.name() << "' (" << op.type_string()
               << ") reads an iterator that a stage reads ahead of the steps. "
                  "It gets the next element, and the stage makes again what it "
                  "had made of this and of later ones, each time. To use the "
                  "element of a record, use the outputs of the get_next() that "
                  "the stage reads; to read elements of its own, give the node "
                  "another iterator.";
}

}  // namespace staging
}  // namespace tensorflow
