// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/histories/iterator.h"

#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/iterator_reads.h"
#include "tensorflow_staging/core/sources/roll_back.h"

namespace tensorflow {
namespace staging {

Iterator::~Iterator() { Source::Forget(this); }

Status Iterator::GetNext(OpKernelContext* ctx, std::vector<Tensor>* element,
                         bool* is_end) {
  std::shared_ptr<State> state;
  IteratorRead read(ctx, this);
  TF_RETURN_IF_ERROR(read.Await());
  {
    tf_shared_lock l(mu_);
    state = state_;
    read.Begin();
  }
  Status status;
  if (read.Answers(element, is_end, &status)) return status;
  if (!state->is_initialised()) {
    read.EndWithoutDataset();
    return errors::FailedPrecondition(
        "GetNext() failed because the iterator has not been initialized.");
  }
  status = state->GetNext(element, is_end);
  read.End(element, is_end, &status);
  return status;
}

bool Iterator::State::is_initialised() {
  mutex_lock l(mu);
  return position.is_initialised;
}

Status Iterator::State::GetNext(std::vector<Tensor>* element, bool* is_end) {
  // It takes a while.
  for (int i = 0; i < 3; ++i) {
    mutex_lock l(mu);
    if (is_cancelled) return errors::Cancelled("The iterator was cancelled.");
  }
  mutex_lock l(mu);
  int64_t value = 0;
  TF_RETURN_IF_ERROR(position.GetNext(&value, is_end));
  if (!*is_end) *element = {Tensor(value)};
  return OkStatus();
}

void Iterator::Change(const Saved& saved) {
  auto state = std::make_shared<State>();
  {
    mutex_lock l(state->mu);
    state->position = saved.position;
  }
  RollBack roll_back;
  {
    mutex_lock l(mu_);
    std::swap(state_, state);
    if (!saved.outcomes.empty()) source_->NoteReadAhead();
    roll_back.Change(source_, saved.outcomes);
  }
  // What a staged read gets of the old state is void, so it is cut short. Who else
  // reads it goes on.
  if (state.use_count() == 2 && source_->IsLastVersionRead()) {
    mutex_lock l(state->mu);
    state->is_cancelled = true;
  }
  roll_back.TellStages();
}

Iterator::Saved Iterator::Save(const SaveMoment& moment) {
  CancellationManager cancellation;
  const StatusOr<int64_t> turn = source_->AwaitTurn(&cancellation);
  TF_CHECK_OK(turn.status());
  Saved saved;
  std::shared_ptr<State> state;
  {
    tf_shared_lock l(mu_);
    state = state_;
    source_->NoteRead(*turn);
    saved.outcomes = source_->UnusedAt(moment.value());
  }
  {
    mutex_lock l(state->mu);
    saved.position = state->position;
  }
  source_->EndTurn(*turn);
  return saved;
}

}  // namespace staging
}  // namespace tensorflow
