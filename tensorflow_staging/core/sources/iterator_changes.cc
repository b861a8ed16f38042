// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_changes.h"

#include <cstdint>
#include <utility>

#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/dataset_identity.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
Status MakeReader(const Tensor& position,
                  std::unique_ptr<data::IteratorStateReader>* reader) {
  std::vector<const VariantTensorData*> entries;
  const auto flat = position.flat<Variant>();
  for (int64_t i = 0; i < flat.size(); ++i) {
    const auto* entry = flat(i).get<data::IteratorStateVariant>();
    if (entry == nullptr) {
      return errors::InvalidArgument("Entry ", i, " of a restored position is ",
                                     flat(i).TypeName(),
                                     " instead of the state of an iterator.");
    }
    entries.push_back(entry->GetData());
  }
  *reader = std::make_unique<data::VariantTensorDataReader>(entries);
  return OkStatus();
}

IteratorChange::IteratorChange(const void* iterator, OpKernelContext* ctx,
                               bool is_initialiser)
    : source_(Source::Of(iterator)),
      ctx_(ctx),
      is_initialiser_(is_initialiser) {}

IteratorChange IteratorChange::Initialise(const void* iterator,
                                          OpKernelContext* ctx) {
  IteratorChange change(iterator, ctx, /*is_initialiser=*/true);
  std::optional<Position> restored = change.Claim();
  if (!restored.has_value()) return change;
  const uint64_t dataset = FingerprintOfDataset(ctx);
  if (restored->dataset.has_value() && *restored->dataset != dataset) {
    return change;
  }
  restored->dataset = dataset;
  // The position was read when it was restored.
  if (MakeReader(restored->position, &change.restored_reader_).ok()) {
    change.position_ = change.restored_reader_.get();
  }
  change.restored_ = std::move(restored);
  return change;
}

std::optional<IteratorChange::Position> IteratorChange::Claim() {
  RestoredPosition& restored = source_->restored_position();
  std::optional<Position> position = restored.Get();
  if (!position.has_value() ||
      position->initializer != NameOfInitializer(ctx_)) {
    return std::nullopt;
  }
  source_->BeginClaim();
  claim_.reset(source_.get());
  // From here on no step can use what waits.
  roll_back_->GiveBackAll(source_);
  roll_back_->TellStages();
  if (!IsInUse(*position)) return position;
  restored.Forget();
  return std::nullopt;
}

bool IteratorChange::IsInUse(const Position& position) const {
  if (source_->HasBeenUsed()) return true;
  if (!position.is_given) return false;
  // A step need not read all iterators that were restored in one run.
  for (const std::shared_ptr<Source>& other : Source::All()) {
    const std::optional<Position> same = other->restored_position().Get();
    if (same.has_value() && same->restored_in == position.restored_in &&
        other->HasBeenUsed()) {
      return true;
    }
  }
  return false;
}

IteratorChange IteratorChange::Restore(const void* iterator,
                                       OpKernelContext* ctx,
                                       data::IteratorStateReader* reader) {
  IteratorChange change(iterator, ctx, /*is_initialiser=*/false);
  change.position_ = reader;
  return change;
}

bool IteratorChange::IsHeld(bool is_initialised) {
  // TensorFlow's own restore gives the position to the iterator as it is.
  if (is_initialised &&
      !HasNodeAttr(ctx_->op_kernel().def(), kAwaitsInitializerAttr)) {
    return false;
  }
  SavedState state;
  std::unique_ptr<data::IteratorStateReader> reader;
  if (!HasSavedState(*position_) || !Read(position_, &state).ok() ||
      ctx_->num_inputs() < 2 || ctx_->input_dtype(1) != DT_VARIANT ||
      !MakeReader(ctx_->input(1), &reader).ok()) {
    return false;
  }
  restored_ = {ctx_->input(1), state.initializer, /*dataset=*/std::nullopt,
               ctx_->step_id()};
  RestoredPosition& restored = source_->restored_position();
  if (is_initialised && restored.initializer() == state.initializer) {
    return false;
  }
  restored.Set(*std::move(restored_));
  source_->BeginUse();
  return true;
}

Status IteratorChange::Prepare() {
  if (position_ == nullptr || !HasSavedState(*position_)) return OkStatus();
  SavedState state;
  TF_RETURN_IF_ERROR(Read(position_, &state));
  outcomes_ = std::move(state.outcomes);
  return OkStatus();
}

void IteratorChange::Apply() {
  RestoredPosition& restored = source_->restored_position();
  if (is_initialiser_) restored.SetInitializer(NameOfInitializer(ctx_));
  // A region that initialises its own iterator does not restart its stage. A
  // one-shot iterator is initialised with its handle.
  if (StagedRun::Find(ctx_->cancellation_manager()) == nullptr) {
    if (!outcomes_.empty()) source_->NoteReadAhead();
    roll_back_->Change(source_, std::move(outcomes_));
  }
  if (!restored_.has_value()) return;
  restored_->is_given = true;
  restored.Set(*std::move(restored_));
  source_->BeginUse();
}

void IteratorChange::Finish() {
  claim_.reset();
  roll_back_->TellStages();
}

}  // namespace staging
}  // namespace tensorflow
