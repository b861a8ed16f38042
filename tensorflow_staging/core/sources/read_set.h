// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_READ_SET_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_READ_SET_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/lock_levels.h"

namespace tensorflow {
namespace staging {

struct Outcome;
class Source;
class Stage;

// An entry of the ledger that an iterator had in one of its versions.
struct HeldEntry {
  std::shared_ptr<Source> source;
  int64_t version;
  int64_t number;
  std::shared_ptr<const Outcome> outcome;
};

using HeldEntries = absl::InlinedVector<HeldEntry, 1>;

// What a staged run has read, and then the record that it has put: the entries
// that it holds in the ledgers of iterators.
//
//   held ----> used    a step has got the record, or the run's error
//     |
//     +------> stale   one of the entries went back (roll_back.h), or another
//                      run holds them now
//
// Thread-safe.
class ReadSet {
 public:
  // `stage` holds it. None if the program itself has read.
  ReadSet() = default;
  explicit ReadSet(core::WeakPtr<Stage> stage) : stage_(std::move(stage)) {}
  // Returns what the program itself has read, and uses.
  static std::shared_ptr<ReadSet> MakeUsed();
  ReadSet(const ReadSet&) = delete;
  ReadSet& operator=(const ReadSet&) = delete;

  bool is_stale() const { return state() == State::kStale; }
  bool is_used() const { return state() == State::kUsed; }
  // Whether a save from `moment` on counts it as not yet used.
  bool IsUnusedAt(int64_t moment) const TF_LOCKS_EXCLUDED(mu_);
  bool empty() const TF_LOCKS_EXCLUDED(mu_);
  // Whether it holds an entry that comes before one that `other` holds of the same
  // source.
  bool IsBefore(const ReadSet& other) const TF_LOCKS_EXCLUDED(mu_);
  // Calls `use` with each entry that it holds, with the lock.
  template <typename Use>
  void ForEach(Use use) const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    for (const HeldEntry& entry : entries_) use(entry);
  }

  // Adds an entry. Returns false, and adds nothing, if it is stale.
  bool Add(HeldEntry entry) TF_LOCKS_EXCLUDED(mu_);
  // A step gets what was made from it. Returns false if it is stale: then no step
  // may. Waits for a roll-back that is under way: it may be about to give back what
  // comes before.
  bool Use() TF_LOCKS_EXCLUDED(mu_);
  // The step has gone on: forgets what it has used, and lets the ledgers forget it. A
  // read or the end of a run would otherwise destroy the elements, and the next record
  // would wait for that. Call this without locks.
  void ForgetUsed() TF_LOCKS_EXCLUDED(mu_);

 private:
  // Only the rule makes it stale.
  friend class RollBack;

  enum class State { kHeld, kUsed, kStale };
  State state() const { return state_.load(std::memory_order_acquire); }

  bool UseBetweenRollBacks() TF_LOCKS_EXCLUDED(mu_);
  // Makes it stale, and appends what it held to `*entries`. Returns false if it is
  // used.
  bool MakeStale(std::vector<HeldEntry>* entries) TF_LOCKS_EXCLUDED(mu_);

  const core::WeakPtr<Stage> stage_;
  mutable mutex mu_ TF_ACQUIRED_AFTER(kBeforeReadSets);
  std::atomic<State> state_{State::kHeld};
  int64_t used_at_ TF_GUARDED_BY(mu_) = 0;
  HeldEntries entries_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_READ_SET_H_
