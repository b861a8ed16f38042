// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

class RunHolds;

// What stages know of one iterator: an IteratorResource, whose layout belongs
// to TensorFlow's library, so this is beside it.
//
// An iterator gets its next version when it is given another dataset or another
// position, and that has succeeded. Its readers are the stages whose runs have
// read it, directly or in records of other stages.
//
// Lock order: the iterator's lock, a buffer's lock, this object's lock.
// Thread-safe.
class Source : public std::enable_shared_from_this<Source> {
 public:
  // A position that was restored, for the dataset that an initialiser gives.
  struct HeldPosition {
    Tensor position;
    std::string initializer;
    // The fingerprint of the dataset that has got the position already. What is
    // fed may change, and then gives the same initialiser another one.
    std::optional<uint64_t> dataset;
    // The session's run that has restored it.
    int64_t restored_in = 0;
    // Whether the iterator has got it already.
    bool is_given = false;
  };
  using Element = std::vector<Tensor>;
  struct OrderedElement {
    Element tensors;
    int64_t order;
  };
  using RestoredRecords = std::map<std::string, std::vector<SavedRecord>>;
  // The records that waited for a stage: what they count as made from, and the
  // number of the session's run that has restored them (RunHolds::id).
  struct Waiting {
    std::vector<SavedRecord> records;
    ReadSet reads;
    int64_t restored_in = 0;
  };

  // The source of the iterator at an address.
  static std::shared_ptr<Source> Of(const void* iterator);
  // The same; null if nothing is known of the iterator.
  static std::shared_ptr<Source> Find(const void* iterator);
  // The iterator is being destroyed.
  static void Forget(const void* iterator);

  // Counts the changes of all sources and the discards of all stages, so that
  // what came first can be told.
  static int64_t Now() { return clock_.load(std::memory_order_acquire); }
  static int64_t Tick() { return ++clock_; }

  // The version of an iterator that no dataset has been given to.
  static constexpr int64_t kNoDataset = 0;
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  // When the session's run ended that began the version, by Now(); later than
  // any Now() until then. All iterators that a run changes have the same time, so
  // a staged run that began before it reads none of them.
  int64_t changed_at() const TF_LOCKS_EXCLUDED(mu_);

  // Begins the next version, which has `restored` records for stages that are
  // no readers yet. `changing` are the holds of the session's run that changes
  // the iterator. Returns the readers, in the order in which they became so.
  std::vector<core::RefCountPtr<SourceReader>> Change(
      const RestoredRecords& restored, RunHolds* changing = nullptr)
      TF_LOCKS_EXCLUDED(mu_);
  // The holds of the run that has changed the iterator last; null when that run
  // has ended. They must include each stage that tries to read until then.
  core::RefCountPtr<RunHolds> changing() const TF_LOCKS_EXCLUDED(mu_);
  std::vector<core::RefCountPtr<SourceReader>> Readers() TF_LOCKS_EXCLUDED(mu_);
  // The same for a save by the session's run of `saving`, and the restored
  // records that wait for stages that have not read yet.
  std::vector<core::RefCountPtr<SourceReader>> ReadersToSave(
      RunHolds* saving, RestoredRecords* restored) TF_LOCKS_EXCLUDED(mu_);
  // The stages that have not read yet, and for which restored records wait.
  std::vector<std::string> AwaitedReaders() const TF_LOCKS_EXCLUDED(mu_);

  // Makes a stage a reader. Sets `*saving` to the holds of a session's run that
  // is saving the iterator, if the stage was no reader before: then it may not
  // be paused.
  void AddReader(SourceReader* reader, core::RefCountPtr<RunHolds>* saving)
      TF_LOCKS_EXCLUDED(mu_);
  // A run of `reader`, which a pause of the stage waits for, begins to read: adds
  // the records that wait for the stage to `*waiting`. Makes it a reader, and
  // gets what waits, also of the sources that were restored in the same run of a
  // session and which it read when the checkpoint was saved: it need not read
  // all of them in each run, and must not put a record before these. Returns
  // INVALID_ARGUMENT if the records do not fit the stage.
  Status TakeWaiting(SourceReader* reader, std::vector<Waiting>* waiting,
                     core::RefCountPtr<RunHolds>* saving)
      TF_LOCKS_EXCLUDED(mu_);

  // Whether anybody must call TakeGivenBack, CheckNoneWaits, IsClaimed or
  // ReleasePosition, or ask readers to give elements back: whether any source
  // has elements, records, a position, or a reader that yields to others.
  static bool AnyKept() {
    return num_kept_.load(std::memory_order_relaxed) > 0;
  }

  // Numbers the elements that are read from all sources.
  static int64_t NextOrder() { return ++last_order_; }

  // Elements that were read by runs that could not use them: something was not
  // initialised yet, or the stage has ended. They come before those of the
  // iterator, in their order.
  void GiveBack(int64_t version, Element element, int64_t order = NextOrder())
      TF_LOCKS_EXCLUDED(mu_);
  // For a read of `version`: those of another one are not for it.
  std::optional<OrderedElement> TakeGivenBack(int64_t version)
      TF_LOCKS_EXCLUDED(mu_);
  std::vector<OrderedElement> GivenBack() const TF_LOCKS_EXCLUDED(mu_);

  // After a read by something else than a staged run: returns the name of a stage
  // that reads ahead and yields nothing to others, so that the read has skipped
  // the elements of its records. Empty if there is none, or if the stage has been
  // returned before.
  std::string ReaderToWarnOf() TF_LOCKS_EXCLUDED(mu_);

  // Returns INVALID_ARGUMENT if restored records wait for a stage that is not
  // `reader`, which may be null.
  Status CheckNoneWaits(const SourceReader* reader) const
      TF_LOCKS_EXCLUDED(mu_);

  // The op that has initialised the iterator (NameOfInitializer).
  void SetInitializer(std::string name) TF_LOCKS_EXCLUDED(mu_);
  std::string initializer() const TF_LOCKS_EXCLUDED(mu_);
  void HoldPosition(HeldPosition held) TF_LOCKS_EXCLUDED(mu_);
  // Claims the position that waits for this initialiser, which makes an
  // iterator with it; returns no tensor if none waits. Until EndClaim, no staged
  // run reads: its record would belong to the iterator before, which the
  // position may have been given to as well.
  std::optional<HeldPosition> ClaimPosition(const std::string& initializer)
      TF_LOCKS_EXCLUDED(mu_);
  void EndClaim() TF_LOCKS_EXCLUDED(mu_);
  bool IsClaimed() const TF_LOCKS_EXCLUDED(mu_);
  // Waits until no position is claimed, or until a cancellation.
  void AwaitEndOfClaims(CancellationManager* cancellation)
      TF_LOCKS_EXCLUDED(mu_);
  // The program gets something that was read in `version`: the position that
  // this version has is in use, and with it those that were restored in the same
  // run and which their iterators have got: a step need not read all of them. A
  // restored record (`is_restored`) may be of any iterator that the run has
  // restored, and uses all. What a stage reads ahead is not in use before a step
  // takes it.
  void ReleasePosition(int64_t version, bool is_restored = false)
      TF_LOCKS_EXCLUDED(mu_);

  // Reads in progress of staged runs.
  std::atomic<int>& staged_reads() { return staged_reads_; }

  ~Source();

 private:
  Status TakeWaitingHere(SourceReader* reader, std::vector<Waiting>* waiting)
      TF_LOCKS_EXCLUDED(mu_);
  std::vector<core::RefCountPtr<SourceReader>> ReadersHere()
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Recounts what this source adds to num_kept_.
  void CountKept() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static std::atomic<int64_t> clock_;
  static std::atomic<int64_t> last_order_;
  static std::atomic<int> num_kept_;
  static std::atomic<int> num_restored_;

  std::atomic<int64_t> version_{kNoDataset};
  std::atomic<int> staged_reads_{0};
  // Whether ReaderToWarnOf may find a stage.
  std::atomic<bool> may_warn_{false};

  mutable mutex mu_;
  // The address tells readers apart while the weak reference is alive.
  std::vector<std::pair<const SourceReader*, core::WeakPtr<SourceReader>>>
      readers_ TF_GUARDED_BY(mu_);
  core::WeakPtr<RunHolds> changing_ TF_GUARDED_BY(mu_);
  core::WeakPtr<RunHolds> saving_ TF_GUARDED_BY(mu_);
  // Null at first.
  std::shared_ptr<const std::atomic<int64_t>> changed_at_ TF_GUARDED_BY(mu_);
  int64_t changed_in_ TF_GUARDED_BY(mu_) = 0;
  // By the stages that were readers when the checkpoint was saved. One of the
  // sources of a stage has its records, the others have none.
  RestoredRecords restored_ TF_GUARDED_BY(mu_);
  std::deque<OrderedElement> given_back_ TF_GUARDED_BY(mu_);
  std::string initializer_ TF_GUARDED_BY(mu_);
  std::optional<HeldPosition> held_ TF_GUARDED_BY(mu_);
  // Whether a reader yields to others, or has.
  bool is_read_ahead_ TF_GUARDED_BY(mu_) = false;
  int claims_ TF_GUARDED_BY(mu_) = 0;
  condition_variable claims_changed_;
  int kept_ TF_GUARDED_BY(mu_) = 0;
  int waiting_ TF_GUARDED_BY(mu_) = 0;
};

// Gives elements back to their sources. One that has got another version since
// ignores its own.
void GiveBack(std::vector<ReadElement> elements);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_H_
