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
#include "tensorflow_staging/core/sources/iterator_reads.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

// Reads a position from the tensor that SerializeIterator writes.
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

}  // namespace

IteratorChange::IteratorChange(const void* iterator, OpKernelContext* ctx,
                               bool is_initialiser)
    : iterator_(iterator),
      source_(Source::Of(iterator)),
      ctx_(ctx),
      is_initialiser_(is_initialiser) {}

IteratorChange IteratorChange::Initialise(const void* iterator,
                                          OpKernelContext* ctx) {
  IteratorChange change(iterator, ctx, /*is_initialiser=*/true);
  if (!Source::AnyKept()) return change;
  std::optional<Source::HeldPosition> held =
      change.source_->ClaimPosition(NameOfInitializer(ctx));
  if (!held.has_value()) return change;
  change.claim_.reset(change.source_.get());
  const uint64_t dataset = FingerprintOfDataset(ctx);
  if (held->dataset.has_value() && *held->dataset != dataset) return change;
  held->dataset = dataset;
  change.held_ = std::move(held);
  // A held position was read when it was restored.
  if (MakeReader(change.held_->position, &change.held_position_).ok()) {
    change.position_ = change.held_position_.get();
  }
  return change;
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
  hold_ = {ctx_->input(1), state.initializer, /*dataset=*/std::nullopt,
           ctx_->step_id()};
  if (is_initialised && source_->initializer() == state.initializer) {
    return false;
  }
  source_->HoldPosition(*std::move(hold_));
  return true;
}

Status IteratorChange::Prepare() {
  if (position_ == nullptr || !HasSavedState(*position_)) return OkStatus();
  SavedState state;
  TF_RETURN_IF_ERROR(Read(position_, &state));
  for (const auto& reader : source_->Readers()) {
    const auto records = state.records.find(reader->name());
    if (records == state.records.end()) continue;
    TF_RETURN_IF_ERROR(reader->Check(records->second));
  }
  restored_ = std::move(state.records);
  given_back_ = std::move(state.elements);
  return OkStatus();
}

void IteratorChange::HoldPosition() {
  for (std::optional<Source::HeldPosition>* given : {&hold_, &held_}) {
    if (!given->has_value()) continue;
    (*given)->is_given = true;
    source_->HoldPosition(**given);
  }
}

void IteratorChange::Apply() {
  if (is_initialiser_) source_->SetInitializer(NameOfInitializer(ctx_));
  // A region that initialises its own iterator does not restart its stage. A
  // one-shot iterator is initialised with its handle.
  if (StagedRun::Find(ctx_->cancellation_manager()) != nullptr) {
    HoldPosition();
    due_.push_back(NoteHandle(ctx_, iterator_));
    return;
  }
  holds_ = RunHolds::Of(ctx_);
  // 1. No run begins to read, so each run reads either only what was before all
  //    changes of this session's run, or what is after them.
  for (const auto& reader : source_->Readers()) {
    due_.push_back(holds_->Hold(reader.get()));
  }
  // 2. From here on what has been read is stale.
  staged_reads_ = source_->staged_reads();
  //    A one-shot iterator gets its only dataset in the first run that needs it.
  //    That may be a step, which takes a record of a stage that reads it next.
  const bool is_one_shot = ctx_->op_kernel().type_string() == "OneShotIterator";
  const auto readers =
      source_->Change(restored_, is_one_shot ? nullptr : holds_.get());
  //    A step that takes what was read before does not release the position.
  HoldPosition();
  ReadSet reads;
  reads.Add(source_, source_->version());
  for (Source::Element& element : given_back_) {
    source_->GiveBack(source_->version(), std::move(element));
  }
  // 3. The stages drop it.
  for (const auto& reader : readers) {
    due_.push_back(holds_->Hold(reader.get()));
    std::vector<SavedRecord> restored;
    if (const auto it = restored_.find(reader->name()); it != restored_.end()) {
      restored = std::move(it->second);
      restored_.erase(it);
    }
    due_.push_back(
        reader->OnSourceChanged(holds_->id(), std::move(restored), reads));
  }
}

void IteratorChange::Finish() {
  for (SourceReader::Due& due : due_) due();
  due_.clear();
  holds_.reset();
  claim_.reset();
}

}  // namespace staging
}  // namespace tensorflow
