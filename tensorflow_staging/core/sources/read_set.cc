// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/read_set.h"

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

void ReadSet::Add(const std::shared_ptr<Source>& source, int64_t version) {
  for (const Read& read : reads_) {
    if (read.first == source && read.second == version) return;
  }
  reads_.emplace_back(source, version);
}

void ReadSet::Add(const ReadSet& other) {
  for (const auto& [source, version] : other) Add(source, version);
  has_restored_ |= other.has_restored_;
}

bool ReadSet::IsStale() const {
  for (const auto& [source, version] : reads_) {
    if (source->version() != version) return true;
  }
  return false;
}

void ReadSet::AddUnchanged(std::set<const Source*>* sources) const {
  for (const auto& [source, version] : reads_) {
    if (source->version() == version) sources->insert(source.get());
  }
}

bool ReadSet::HasSeveralSources() const {
  return absl::c_any_of(reads_, [this](const Read& read) {
    return read.first != reads_.front().first;
  });
}

bool ReadSet::HasAnyOf(const std::set<const Source*>& sources) const {
  return absl::c_any_of(reads_, [&sources](const Read& read) {
    return sources.count(read.first.get()) > 0;
  });
}

void ReadSet::NoteUse() const {
  if (!Source::AnyKept()) return;
  for (const auto& [source, version] : reads_) {
    source->ReleasePosition(version, has_restored_);
  }
}

}  // namespace staging
}  // namespace tensorflow
