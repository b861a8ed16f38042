// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_changes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/data/hash_utils.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/hash.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/records/record_copies.h"
#include "tensorflow_staging/core/sources/iterator_reads.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

// Identifies the dataset that the op of `ctx` gives to an iterator: the name of
// the op without the scopes that it shares with the iterator, so that it is the
// same in an import of the graph.
std::string NameOfInitializer(OpKernelContext* ctx) {
  const OpKernel& op = ctx->op_kernel();
  if (op.type_string() == "OneShotIterator") return "";
  absl::string_view name = op.name();
  std::string iterator;
  // The inputs of MakeIterator are the dataset and the iterator, whose resource
  // has the name of its op, after a number if it has no shared_name: _0_scope/it.
  if (ctx->num_inputs() > 1 && ctx->input_dtype(1) == DT_RESOURCE) {
    iterator = HandleFromInput(ctx, 1).name();
    const size_t number_end = iterator.find_first_not_of("0123456789", 1);
    if (absl::StartsWith(iterator, "_") && number_end != std::string::npos &&
        number_end > 1 && iterator[number_end] == '_') {
      iterator.erase(0, number_end + 1);
    }
  }
  size_t begin = 0;
  for (size_t i = 0; i < std::min(name.size(), iterator.size()); ++i) {
    if (name[i] != iterator[i]) break;
    if (name[i] == '/') begin = i + 1;
  }
  return std::string(name.substr(begin));
}

// Identifies what the initialiser of `ctx` gives to its iterator, within this
// process: the ops of the dataset, their constants and what they read. Of large
// tensors, only the type and the shape count. 0 if it is not known.
uint64_t FingerprintOfDataset(OpKernelContext* ctx) {
  constexpr size_t kLargestTensor = 1 << 20;
  data::DatasetBase* dataset = nullptr;
  std::vector<std::pair<std::string, Tensor>> tensors;
  GraphDef graph;
  std::string node;
  if (ctx->num_inputs() == 0 || ctx->input_dtype(0) != DT_VARIANT ||
      !data::GetDatasetFromVariantTensor(ctx->input(0), &dataset).ok() ||
      !data::AsGraphDefForRewrite(ctx, dataset, &tensors, &graph, &node).ok()) {
    return 0;
  }
  // TensorFlow's HashGraph differs for equal graphs that have two functions: it
  // knows their nodes by addresses, which the second function may have again.
  uint64_t fingerprint = 0;
  for (NodeDef& def : *graph.mutable_node()) {
    // Has the number of the dataset in this process.
    def.mutable_attr()->erase("metadata");
    fingerprint = Hash64Combine(fingerprint, DeterministicProtoHash64(def));
  }
  uint64_t functions = 0;
  for (const FunctionDef& function : graph.library().function()) {
    functions =
        Hash64CombineUnordered(functions, DeterministicProtoHash64(function));
  }
  fingerprint = Hash64Combine(fingerprint, functions);
  for (const auto& [name, tensor] : tensors) {
    uint64_t hash = Hash64(strings::StrCat(DataTypeString(tensor.dtype()),
                                           tensor.shape().DebugString()));
    uint64_t content = 0;
    if (tensor.TotalBytes() <= kLargestTensor &&
        data::HashTensor(tensor, &content).ok()) {
      hash = Hash64Combine(hash, content);
    }
    fingerprint = Hash64Combine(fingerprint, hash);
  }
  return fingerprint;
}

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

using Readers = std::vector<core::RefCountPtr<SourceReader>>;

// Adds `reader` to `*after`, after the stages that take its records, unless it
// is in `*visited`.
void AddAfterTakers(core::RefCountPtr<SourceReader> reader,
                    std::set<const SourceReader*>* visited, Readers* after) {
  if (!visited->insert(reader.get()).second) return;
  for (core::RefCountPtr<SourceReader>& taker : reader->Takers()) {
    AddAfterTakers(std::move(taker), visited, after);
  }
  after->push_back(std::move(reader));
}

// Adds the stages that take records of `readers`, or of those. Each comes after
// the stages whose records it takes.
Readers WithTakers(Readers readers) {
  std::set<const SourceReader*> visited;
  Readers ordered;
  for (core::RefCountPtr<SourceReader>& reader : readers) {
    AddAfterTakers(std::move(reader), &visited, &ordered);
  }
  absl::c_reverse(ordered);
  return ordered;
}

// Waits until all of `readers` are quiet, and holds them then; none after an
// error.
Status PauseStages(const Readers& readers, const RunHolds& holds,
                   OpKernelContext* ctx) {
  // The last stage of a chain first: a stage that waits for a record gets it
  // from the stage before it.
  for (size_t i = readers.size(); i > 0; --i) {
    const Status paused = readers[i - 1]->AwaitPause(
        holds.step_container(), ctx->cancellation_manager());
    if (paused.ok()) continue;
    for (size_t j = i; j < readers.size(); ++j) {
      readers[j]->EndHold(holds.step_container());
    }
    return paused;
  }
  return OkStatus();
}

// Sets `*records` to copies in host memory of a stage's records.
Status RecordsOnHost(const SourceReader& reader, OpKernelContext* ctx,
                     std::vector<SavedRecord>* records) {
  const RecordLayout layout = reader.Layout();
  *records = reader.Records();
  if (layout.on_device.empty()) return OkStatus();
  for (SavedRecord& record : *records) {
    TF_RETURN_IF_ERROR(CopyToHost(ctx, layout, &record.tensors));
  }
  return OkStatus();
}

// The elements of `source` that its readers or nobody has.
std::vector<Source::Element> ElementsInOrder(const Source& source,
                                             const Readers& readers) {
  std::map<int64_t, Source::Element> by_order;
  for (Source::OrderedElement& element : source.GivenBack()) {
    by_order[element.order] = std::move(element.tensors);
  }
  for (const auto& reader : readers) {
    for (ReadElement& element : reader->ElementsOf(&source)) {
      by_order[element.order] = std::move(element.tensors);
    }
  }
  std::vector<Source::Element> elements;
  for (auto& [order, element] : by_order) {
    elements.push_back(std::move(element));
  }
  return elements;
}

// Sets what `state` has of the stages that read `source`, which are paused:
// their records, unless `holds` has them with another iterator, or their names.
Status CopyRecords(const Source& source, const Readers& readers,
                   RunHolds* holds, OpKernelContext* ctx, SavedState* state) {
  for (const auto& reader : readers) {
    if (reader->YieldsToOthers()) continue;
    std::vector<SavedRecord>& records = state->records[reader->name()];
    if (!holds->ClaimRecords(reader->name(), &source)) continue;
    TF_RETURN_IF_ERROR(RecordsOnHost(*reader, ctx, &records));
  }
  state->elements = ElementsInOrder(source, readers);
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

Status SaveRecords(const void* iterator, OpKernelContext* ctx,
                   data::IteratorStateWriter* writer) {
  const std::shared_ptr<Source> source = Source::Of(iterator);
  const core::RefCountPtr<RunHolds> holds = RunHolds::Of(ctx);
  SavedState state;
  state.initializer = source->initializer();
  // Records of an earlier checkpoint may wait for stages that have not read yet.
  // A stage that gets them meanwhile has them twice.
  Source::RestoredRecords waiting;
  for (const std::string& stage : source->AwaitedReaders()) {
    holds->ClaimRecords(stage, source.get());
  }
  Readers readers = WithTakers(source->Readers());
  while (true) {
    TF_RETURN_IF_ERROR(PauseStages(readers, *holds, ctx));
    // Of several iterators of a stage, the first that is saved has its records.
    const Status copied =
        CopyRecords(*source, readers, holds.get(), ctx, &state);
    // Another stage may have begun to read meanwhile, or to take records of
    // these. One that does so from here on finds that the iterator is being
    // saved.
    Readers now = WithTakers(source->ReadersToSave(holds.get(), &waiting));
    const bool are_all = absl::c_all_of(now, [&readers](const auto& reader) {
      return absl::c_linear_search(readers, reader);
    });
    for (const auto& reader : readers) {
      if (are_all || !copied.ok()) {
        holds->Keep(tsl::core::GetNewRef(reader.get()));
      } else {
        reader->EndHold(holds->step_container());
      }
    }
    TF_RETURN_IF_ERROR(copied);
    if (are_all) break;
    readers = std::move(now);
  }
  for (auto& [stage, records] : waiting) {
    std::vector<SavedRecord>& saved = state.records[stage];
    absl::c_move(saved, std::back_inserter(records));
    saved = std::move(records);
  }
  return Write(state, writer);
}

}  // namespace staging
}  // namespace tensorflow
