// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_saves.h"

namespace tensorflow {
namespace staging {

IteratorSave::IteratorSave(const void* iterator, OpKernelContext* ctx)
    : ctx_(ctx), source_(Source::Of(iterator)), moment_(SaveMoment::Of(ctx)) {}

IteratorSave::~IteratorSave() {
  if (turn_ != 0) source_->EndTurn(turn_);
}

Status IteratorSave::Await() {
  TF_ASSIGN_OR_RETURN(turn_, source_->AwaitTurn(ctx_->cancellation_manager()));
  return OkStatus();
}

void IteratorSave::Begin() {
  source_->NoteRead(turn_);
  state_.initializer = source_->restored_position().initializer();
  state_.outcomes = source_->UnusedAt(moment_->value());
}

Status IteratorSave::Write(data::IteratorStateWriter* writer) const {
  return staging::Write(state_, writer);
}

}  // namespace staging
}  // namespace tensorflow
