// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_READ_SET_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_READ_SET_H_

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace tensorflow {
namespace staging {

class Source;

// The sources that a staged run has read, or from which a record was made, each
// with the version that it had then. It is stale once one of them has another
// version.
class ReadSet {
 public:
  using Read = std::pair<std::shared_ptr<Source>, int64_t>;

  void Add(const std::shared_ptr<Source>& source, int64_t version);
  void Add(const ReadSet& other);

  // Some of it comes from restored records. A checkpoint has the records of a
  // stage at one of its sources, so they count as made from that one alone.
  void MarkRestored() { has_restored_ = true; }

  bool IsStale() const;
  // Adds the sources that still have their version.
  void AddUnchanged(std::set<const Source*>* sources) const;
  bool HasAnyOf(const std::set<const Source*>& sources) const;
  // The program gets what was read: restored positions of these versions are in
  // use.
  void NoteUse() const;
  bool empty() const { return reads_.empty(); }
  bool HasSeveralSources() const;

  auto begin() const { return reads_.begin(); }
  auto end() const { return reads_.end(); }

 private:
  std::vector<Read> reads_;
  bool has_restored_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_READ_SET_H_
