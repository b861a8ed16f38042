// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_READER_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_READER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"
#include "tensorflow_staging/core/records/record_copies.h"
#include "tensorflow_staging/core/sources/read_set.h"

namespace tensorflow {
namespace staging {

// A record as a checkpoint has it.
struct SavedRecord {
  std::vector<std::string> tensor_names;
  std::vector<Tensor> tensors;
  // Whether they are in host memory, wherever the stage keeps its records.
  bool is_on_host = true;
};

// An element that a staged run has read.
struct ReadElement {
  // The source, and the version that was read.
  ReadSet::Read from;
  std::vector<Tensor> tensors;
  // Elements with lower numbers come first (Source::NextOrder).
  int64_t order = 0;
};

// Ways to put back the records of other stages from which a record was made, the
// oldest first. Null if there are none.
using PutBacks = std::shared_ptr<std::vector<absl::AnyInvocable<void()>>>;

inline void PutBackAll(const PutBacks& taken) {
  if (taken == nullptr) return;
  for (auto& put_back : *taken) put_back();
}

// What runs have read and taken that put no record.
struct UnusedReads {
  std::vector<ReadElement> elements;
  PutBacks taken;
};

// How a staged run began.
enum class RunBegin {
  kAdmitted,  // It may read.
  kWaits,     // It must wait before it reads.
  kRefused,   // The stage has ended, and nothing that it has read can change.
};

// What a staged run leaves behind.
struct RunEnd {
  // Which of the stage's sources of records the run belonged to.
  uint64_t producer = 0;
  ReadSet reads;
  bool has_put = false;
  // Whether the run failed because of a change of a source: it says nothing of
  // the stage.
  bool is_stale = false;
  // If the run put nothing, and the stage keeps elements.
  UnusedReads unused;
  // Whether these were given back: what the run has found comes again.
  bool is_undone = false;
};

// A stage, as seen from the sources that it reads: the buffer of its records.
//
// Thread-safe. Only Pause and AwaitRun call back later.
class SourceReader : public ResourceBase {
 public:
  using Record = std::vector<Tensor>;
  using Done = absl::AnyInvocable<void(const Status&)>;
  // Calls the callbacks that a change has ended, without locks.
  using Due = absl::AnyInvocable<void()>;

  explicit SourceReader(std::string name);
  ~SourceReader() override;

  // The stage's name.
  const std::string& name() const { return name_; }
  // Whether a stage of this process has the name.
  static bool Exists(const std::string& name);

  // ---- Runs.

  // Begins a run of a producer. After kAdmitted, call EndRun.
  virtual RunBegin BeginRun(uint64_t producer) = 0;
  // Waits until the run may read: after OK, call EndRun. CANCELLED if
  // `cancellation` or the stage was cancelled first. Sets `*admitted_at`, before
  // any hold that begins later.
  virtual void AwaitRun(uint64_t producer, CancellationManager* cancellation,
                        std::atomic<int64_t>* admitted_at, Done done) = 0;
  virtual void EndRun(RunEnd end) = 0;
  // Ends what waits, because the producers stop.
  virtual void Cancel() = 0;
  // Whether no run has put a record yet.
  virtual bool IsNew() const = 0;
  // The error of a run that has ended the stage, if no take has got it yet.
  virtual Status FailedAhead() const = 0;
  // Whether to keep the elements that a run reads, to give them back.
  virtual bool KeepsElements() const = 0;
  // Whether something else than a staged run gets what the stage has read of a
  // source, if it reads that source: then call GiveBackElements.
  virtual bool YieldsToOthers() const = 0;
  // Drops all records, and gives the elements from which they were made back to
  // their sources; also those of runs whose errors no take has got.
  virtual void GiveBackElements() = 0;
  // When the program has discarded the records last, by Source::Now().
  virtual int64_t discarded_at() const = 0;

  // A run reads, or may read, several sources. If one of them changes, the others
  // get back what records had of them.
  void NoteReadsSeveral() { reads_several_ = true; }
  bool ReadsSeveral() const { return reads_several_; }

  // ---- Changes of a source.

  // Returns INVALID_ARGUMENT if `records` do not fit this stage.
  virtual Status Check(const std::vector<SavedRecord>& records) const = 0;
  // Begins a hold: no run begins to read before EndHold. Fails the takes of the
  // session's run with this step container: its records come after the hold,
  // which lasts as long as that run.
  virtual Due BeginHold(const void* step_container) = 0;
  virtual void EndHold(const void* step_container) = 0;
  // A source has changed, in the session's run number `step`: drops what is
  // stale, opens the stage and stores `restored`, of which each counts as made
  // from `reads`. Called with the iterator's lock.
  virtual Due OnSourceChanged(int64_t step, std::vector<SavedRecord> restored,
                              const ReadSet& reads) = 0;

  // ---- Checkpoints.

  // Begins a hold, and waits until each run that has read has nothing left to
  // do but to wait for room: then all that has come out of the sources is in
  // Records(). After an error, the hold has ended.
  virtual void Pause(const void* step_container,
                     CancellationManager* cancellation, Done done) = 0;
  // The same. Blocks the thread.
  Status AwaitPause(const void* step_container,
                    CancellationManager* cancellation);
  // What a checkpoint has of the stage: its records, or the elements of `source`
  // from which they are made again.
  virtual std::vector<SavedRecord> Records() const = 0;
  virtual std::vector<ReadElement> ElementsOf(const Source* source) const = 0;
  virtual RecordLayout Layout() const = 0;

  // Another stage, `taker`, is going to take a record of this one.
  void AddTaker(SourceReader* taker) TF_LOCKS_EXCLUDED(takers_mu_);
  // The stages that take records of this one.
  std::vector<core::RefCountPtr<SourceReader>> Takers()
      TF_LOCKS_EXCLUDED(takers_mu_);

 private:
  const std::string name_;
  std::atomic<bool> reads_several_{false};
  mutex takers_mu_;
  // The address tells stages apart while the weak reference is alive.
  std::vector<std::pair<const SourceReader*, core::WeakPtr<SourceReader>>>
      takers_ TF_GUARDED_BY(takers_mu_);
};

// How a runner finds the buffer of its stage, if the session is a local one:
// the op that opens the buffer runs in the thread that calls the session.

// Where the ops that the calling thread runs leave the stage that they open;
// null if nobody asks.
core::WeakPtr<SourceReader>* ResumedStage();

// Asks for it. Must live on the stack of one thread.
class ScopedResumedStage {
 public:
  explicit ScopedResumedStage(core::WeakPtr<SourceReader>* stage);

 private:
  const ScopedThreadValue<core::WeakPtr<SourceReader>*> stage_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_READER_H_
