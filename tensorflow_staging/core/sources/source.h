// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/sources/ledger.h"
#include "tensorflow_staging/core/sources/lock_levels.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/restored_position.h"

namespace tensorflow {
namespace staging {

// An iterator with its ledger: an IteratorResource, whose layout belongs to
// TensorFlow's library, so this is beside it.
//
// It gets its next version when it is given another dataset or another position,
// and that has succeeded; then the ledger begins anew. What moves entries back is
// in roll_back.h.
//
// Reads take turns, since the order of the entries has to be that of the
// iterator, and a save takes a turn, since position and ledger belong together:
//
//   AwaitTurn ─▶ TakeBack ─┬──────────────────────────────▶ EndTurn
//                          └▶ the iterator's GetNext ─▶ Enter ─┘
//
// Thread-safe.
class Source : public std::enable_shared_from_this<Source> {
 public:
  // The source of the iterator at an address.
  static std::shared_ptr<Source> Of(const void* iterator);
  // The same; null if nothing is known of the iterator.
  static std::shared_ptr<Source> Find(const void* iterator);
  // The iterator is being destroyed.
  static void Forget(const void* iterator);
  // All that are known.
  static std::vector<std::shared_ptr<Source>> All();

  // Whether any iterator is read ahead or restored.
  static bool AnyIsReadAhead() {
    return num_read_ahead_.load(std::memory_order_relaxed) > 0;
  }
  // From here on, what the program reads of this iterator may be in the ledger.
  void NoteReadAhead();
  bool is_read_ahead() const {
    return is_read_ahead_.load(std::memory_order_relaxed);
  }

  int64_t version() const { return version_.load(std::memory_order_acquire); }

  // ---- Reads.

  // Waits until nobody else reads or saves. Returns the number of the turn, or
  // CANCELLED.
  StatusOr<int64_t> AwaitTurn(CancellationManager* cancellation)
      TF_LOCKS_EXCLUDED(mu_);
  void EndTurn(int64_t turn) TF_LOCKS_EXCLUDED(mu_);

  enum class Got { kNothing, kEntry, kStale };
  // Gives `reads` the oldest entry that is back, and sets `*outcome` to it. Null
  // if the program itself reads, which uses the entry. kStale if the iterator has
  // another version by now, or `reads` is stale.
  Got TakeBack(int64_t version, const std::shared_ptr<ReadSet>& reads,
               std::shared_ptr<const Outcome>* outcome) TF_LOCKS_EXCLUDED(mu_);
  // Enters what the iterator has yielded in this turn, for `reads`. If an older
  // entry has come back meanwhile, `reads` gets that, and `*outcome` is set to it.
  Got Enter(int64_t version, const std::shared_ptr<ReadSet>& reads,
            std::shared_ptr<const Outcome>* outcome) TF_LOCKS_EXCLUDED(mu_);

  // The program has read beside a stage, which makes the stage do its work again.
  // Returns how often that was.
  int64_t CountReadBeside() { return ++reads_beside_; }

  // Forgets the oldest entries that steps have used, and destroys them.
  void Prune() TF_LOCKS_EXCLUDED(mu_);
  // Forgets the entries from the oldest one that is back. Returns that one, or null.
  std::shared_ptr<const Outcome> ForgetBack() TF_LOCKS_EXCLUDED(mu_);
  // Forgets all entries.
  void Clear() TF_LOCKS_EXCLUDED(mu_);

  // ---- Saves.

  // What a save from `moment` on has beside the position.
  Outcomes UnusedAt(int64_t moment) TF_LOCKS_EXCLUDED(mu_);
  // Whether a step has used an element or the end, or the program has read one, since
  // BeginUse.
  bool HasBeenUsed() const TF_LOCKS_EXCLUDED(mu_);
  void BeginUse() TF_LOCKS_EXCLUDED(mu_);
  void NoteUse() TF_LOCKS_EXCLUDED(mu_);

  RestoredPosition& restored_position() { return restored_position_; }
  // No run reads, and none uses what it reads, between the two: an initialiser
  // makes an iterator with the position that this one has.
  void BeginClaim() TF_LOCKS_EXCLUDED(mu_);
  void EndClaim() TF_LOCKS_EXCLUDED(mu_);

  // Whose turn it is takes the iterator's state. The caller holds the iterator's
  // lock. Until then, a change of the iterator leaves it the turn: it will read
  // the new version.
  void NoteRead(int64_t turn) { read_ = turn; }
  // The same for a staged run, which holds the state until EndTurn.
  void NoteStagedRead(int64_t turn) {
    staged_read_ = turn;
    NoteRead(turn);
  }
  // Whether a staged run reads the state that the iterator had in the version
  // before.
  bool IsLastVersionRead() const TF_LOCKS_EXCLUDED(mu_);

  // ---- For RollBack.

  // The oldest entry.
  HeldEntry FirstEntry() TF_LOCKS_EXCLUDED(mu_);
  // Entries from this one on that no step has used go back, if they are of the
  // present version. First makes who holds one stale: `make_stale` returns false
  // if a step has used it.
  using MakeStale =
      absl::FunctionRef<bool(const std::shared_ptr<ReadSet>& holder)>;
  void GiveBackFrom(const HeldEntry& entry, MakeStale make_stale)
      TF_LOCKS_EXCLUDED(mu_);
  std::deque<Ledger::Entry> BeginVersion(Outcomes restored)
      TF_LOCKS_EXCLUDED(mu_);
  // `to` holds an entry from here on.
  void HandOver(const HeldEntry& entry, const std::shared_ptr<ReadSet>& to)
      TF_LOCKS_EXCLUDED(mu_);

  ~Source();

 private:
  bool MayTakeTurn() const TF_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return turn_ == 0 && claims_ == 0;
  }
  // Gives `reads` an entry that is back.
  Got Give(int64_t number, const std::shared_ptr<ReadSet>& reads,
           std::shared_ptr<const Outcome>* outcome)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static std::atomic<int> num_read_ahead_;

  RestoredPosition restored_position_;
  std::atomic<int64_t> version_{0};
  std::atomic<int64_t> reads_beside_{0};
  std::atomic<bool> is_read_ahead_{false};
  // The latest turns of NoteRead and NoteStagedRead.
  std::atomic<int64_t> read_{0};
  std::atomic<int64_t> staged_read_{0};

  mutable mutex mu_ TF_ACQUIRED_AFTER(kBeforeSources)
      TF_ACQUIRED_BEFORE(kBeforeReadSets);
  Ledger ledger_ TF_GUARDED_BY(mu_);
  // Whether a step has used anything of the versions before.
  bool has_been_used_ TF_GUARDED_BY(mu_) = false;
  // Whose turn it is; 0 if nobody reads.
  int64_t turn_ TF_GUARDED_BY(mu_) = 0;
  int64_t last_turn_ TF_GUARDED_BY(mu_) = 0;
  int claims_ TF_GUARDED_BY(mu_) = 0;
  SteadyCondition turn_ended_;
  // How many wait for it, most often none.
  int waiting_ TF_GUARDED_BY(mu_) = 0;
  // The turn of a staged run that still reads the version before; 0 if none does.
  int64_t overtaken_turn_ TF_GUARDED_BY(mu_) = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_SOURCE_H_
