// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ROLL_BACK_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ROLL_BACK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/ledger.h"
#include "tensorflow_staging/core/sources/lock_levels.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/stage.h"

namespace tensorflow {
namespace staging {

class Source;

// The one rule that moves what was read ahead back to its iterators:
//
//   If an entry goes back, so do all later entries of its iterator that no step
//   has used. The runs and the records that held any of these are stale, and
//   what they held of other iterators goes back by the same rule.
//
// A failed or stopped run, a change of an iterator, a read of the program beside
// a stage and tf.staging.discard are all cases of this rule. No step takes a
// stale record. A stale run puts no record and is repeated: its stage reads the
// same elements again.
//
// The process makes one roll-back at a time. Reads, puts and saves go on
// meanwhile, and so do takes for as long as nothing is used. Not thread-safe.
class RollBack {
 public:
  RollBack() = default;
  ~RollBack() { TellStages(); }
  RollBack(const RollBack&) = delete;
  RollBack& operator=(const RollBack&) = delete;

  // Gives back what `reads` holds, unless a step has used it.
  void GiveBack(const std::shared_ptr<ReadSet>& reads) TF_LOCKS_EXCLUDED(mu_);
  // Gives back elements alone, and uses the errors of iterators: the program gets
  // an error and tries again, and the error may not come again then.
  void GiveBackElements(const std::shared_ptr<ReadSet>& reads)
      TF_LOCKS_EXCLUDED(mu_);
  // Gives back everything of a source that no step has used. Returns whether a
  // stage held any of it.
  bool GiveBackAll(const std::shared_ptr<Source>& source)
      TF_LOCKS_EXCLUDED(mu_);
  // Begins the next version of a source. Its first entries are `restored`, which
  // are back. Voids what was read of the version before.
  void Change(const std::shared_ptr<Source>& source, Outcomes restored)
      TF_LOCKS_EXCLUDED(mu_);
  // A run of another stage has taken a record: it holds from here on what the
  // record held. Returns false, and changes nothing, if the record is stale. If
  // the run is stale, what the record held goes back.
  bool Absorb(const std::shared_ptr<ReadSet>& record,
              const std::shared_ptr<ReadSet>& run) TF_LOCKS_EXCLUDED(mu_);

  // Lets the stages of what has become stale drop it. Call this without locks; the
  // destructor does it at the latest.
  void TellStages() TF_LOCKS_EXCLUDED(mu_);

 private:
  friend class ReadSet;

  // Returns false if a step has used it.
  bool MakeStale(const std::shared_ptr<ReadSet>& reads)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives back an entry and all later ones of its source.
  void GiveBackFrom(const HeldEntry& entry) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives back `todo_`.
  void Finish() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static mutex mu_ TF_ACQUIRED_AFTER(kBeforeRollBack)
      TF_ACQUIRED_BEFORE(kBeforeSources);
  std::vector<HeldEntry> todo_;
  std::vector<std::shared_ptr<ReadSet>> stale_;
  // What may be the last references to outcomes. They are destroyed without locks.
  std::vector<HeldEntry> done_;
  std::vector<Ledger::Entry> void_;
};

// Gives back what `reads` holds. Call this without locks.
inline void GiveBack(const std::shared_ptr<ReadSet>& reads) {
  RollBack().GiveBack(reads);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ROLL_BACK_H_
