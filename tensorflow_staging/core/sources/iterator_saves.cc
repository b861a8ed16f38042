// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_saves.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/records/record_copies.h"
#include "tensorflow_staging/core/sources/run_holds.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {
namespace {

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
    if (record.is_on_host) continue;
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
    TF_RETURN_IF_ERROR(holds->CheckNoLateRead(reader->name()));
    std::vector<SavedRecord>& records = state->records[reader->name()];
    if (!holds->ClaimRecords(reader->name(), &source)) continue;
    TF_RETURN_IF_ERROR(RecordsOnHost(*reader, ctx, &records));
    const Status failed = reader->FailedAhead();
    if (failed.ok()) continue;
    LOG(WARNING) << "Stage '" << reader->name()
                 << "' has met an error ahead of the steps, which no step has "
                    "got yet. The checkpoint that is being saved has the "
                    "records before it; a program that restores it goes on "
                    "after the record that failed. The error: "
                 << failed;
  }
  state->elements = ElementsInOrder(source, readers);
  return OkStatus();
}

}  // namespace

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
