// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_LEDGER_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_LEDGER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

class ReadSet;

// What one GetNext of an iterator has yielded: an element, the end of the data,
// or an error.
struct Outcome {
  Status status;
  bool is_end = false;
  std::vector<Tensor> element;
};

using Outcomes = std::vector<std::shared_ptr<const Outcome>>;

// What has left an iterator and no step has used, in the order in which it was
// read. An entry is
//
//   out   a run, or the record that it has put, holds it;
//   back  the next read gets it, before what the iterator would yield;
//   used  a step has got it. It stays until it is the oldest, and no save of an
//         earlier moment may need it (save_moment.h).
//
// Entries are numbered without gaps. Not thread-safe.
class Ledger {
 public:
  struct Entry {
    std::shared_ptr<const Outcome> outcome;
    // Who holds it, or has used it; null if it is back.
    std::shared_ptr<ReadSet> holder;
  };

  bool empty() const { return entries_.empty(); }
  // From the oldest on. Those of a range are valid until one is added or pruned.
  int64_t begin() const { return first_; }
  int64_t end() const { return first_ + static_cast<int64_t>(entries_.size()); }
  bool Has(int64_t number) const { return number >= begin() && number < end(); }
  Entry& operator[](int64_t number) { return entries_[number - first_]; }

  // Adds an entry that is back, and returns its number.
  int64_t Add(std::shared_ptr<const Outcome> outcome);
  // Returns the number of the oldest entry that is back, or end().
  int64_t FirstBack() const;
  // Makes an entry that is out, back, or the other way round. Returns who held it.
  std::shared_ptr<ReadSet> SetHolder(int64_t number,
                                     std::shared_ptr<ReadSet> holder);
  // The outcomes that a save from `moment` on has: those that no step has used
  // before it.
  Outcomes UnusedAt(int64_t moment) const;
  // Whether a step has used an entry since Clear or BeginUse. An error does not count:
  // after one, the program may initialise anew, and none of its data is used.
  bool HasBeenUsed() const;
  void BeginUse() { has_pruned_ = false; }

  // What has been removed, to be destroyed without the owner's lock. A read removes
  // one entry on average: what the step before it has used.
  using Removed = absl::InlinedVector<Entry, 1>;
  // Removes the oldest entries as long as they are used and no save needs them.
  void Prune(Removed* removed);
  // Removes the entries from `number` on, which are back.
  void RemoveFrom(int64_t number, Removed* removed);
  // Removes all.
  std::deque<Entry> Clear();

 private:
  std::deque<Entry> entries_;
  int64_t first_ = 0;
  int64_t num_back_ = 0;
  bool has_pruned_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_LEDGER_H_
