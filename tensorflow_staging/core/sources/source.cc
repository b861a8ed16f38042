// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/source.h"

#include <cstddef>
#include <iterator>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/address_map.h"
#include "tensorflow_staging/core/sources/run_holds.h"

namespace tensorflow {
namespace staging {
namespace {

// By the address of the iterator.
AddressMap<Source>* Sources() {
  static auto* const sources = new AddressMap<Source>;
  return sources;
}

}  // namespace

std::atomic<int64_t> Source::clock_{1};
std::atomic<int64_t> Source::last_order_{0};
std::atomic<int> Source::num_kept_{0};
std::atomic<int> Source::num_restored_{0};

std::shared_ptr<Source> Source::Of(const void* iterator) {
  std::shared_ptr<Source> found = Find(iterator);
  return found != nullptr
             ? found
             : Sources()->Add(iterator, std::make_shared<Source>());
}

std::shared_ptr<Source> Source::Find(const void* iterator) {
  return Sources()->Find(iterator);
}

void Source::Forget(const void* iterator) { Sources()->Remove(iterator); }

Source::~Source() {
  num_kept_ -= kept_;
  num_restored_ -= waiting_;
}

std::vector<core::RefCountPtr<SourceReader>> Source::Change(
    const RestoredRecords& restored, RunHolds* changing) {
  mutex_lock l(mu_);
  changing_ = core::WeakPtr<RunHolds>(changing);
  given_back_.clear();
  restored_ = restored;
  changed_at_ = changing == nullptr
                    ? std::make_shared<const std::atomic<int64_t>>(Tick())
                    : changing->ended_at();
  changed_in_ = changing == nullptr ? 0 : changing->id();
  version_.fetch_add(1, std::memory_order_acq_rel);
  std::vector<core::RefCountPtr<SourceReader>> readers = ReadersHere();
  // The caller gives them theirs.
  for (const auto& reader : readers) restored_.erase(reader->name());
  CountKept();
  return readers;
}

int64_t Source::changed_at() const {
  mutex_lock l(mu_);
  return changed_at_ == nullptr ? 0 : changed_at_->load();
}

core::RefCountPtr<RunHolds> Source::changing() const {
  mutex_lock l(mu_);
  return changing_.GetNewRef();
}

std::vector<core::RefCountPtr<SourceReader>> Source::Readers() {
  mutex_lock l(mu_);
  return ReadersHere();
}

std::vector<core::RefCountPtr<SourceReader>> Source::ReadersToSave(
    RunHolds* saving, RestoredRecords* restored) {
  mutex_lock l(mu_);
  saving_ = core::WeakPtr<RunHolds>(saving);
  *restored = restored_;
  return ReadersHere();
}

std::vector<std::string> Source::AwaitedReaders() const {
  std::vector<std::string> names;
  mutex_lock l(mu_);
  for (const auto& [stage, records] : restored_) {
    if (!records.empty()) names.push_back(stage);
  }
  return names;
}

std::vector<core::RefCountPtr<SourceReader>> Source::ReadersHere() {
  std::vector<core::RefCountPtr<SourceReader>> readers;
  for (const auto& [address, weak] : readers_) {
    core::RefCountPtr<SourceReader> reader = weak.GetNewRef();
    if (reader != nullptr) readers.push_back(std::move(reader));
  }
  return readers;
}

void Source::AddReader(SourceReader* reader,
                       core::RefCountPtr<RunHolds>* saving) {
  // The last references must not go with the lock held.
  std::vector<core::RefCountPtr<SourceReader>> alive;
  core::RefCountPtr<RunHolds> before;
  mutex_lock l(mu_);
  bool is_known = false;
  for (size_t i = 0; i < readers_.size();) {
    alive.push_back(readers_[i].second.GetNewRef());
    if (alive.back() == nullptr) {
      readers_.erase(readers_.begin() + i);
      continue;
    }
    is_known |= readers_[i].first == reader;
    ++i;
  }
  if (is_known) return;
  readers_.emplace_back(reader, core::WeakPtr<SourceReader>(reader));
  is_read_ahead_ |= reader->YieldsToOthers();
  if (!reader->YieldsToOthers()) may_warn_ = true;
  CountKept();
  core::RefCountPtr<RunHolds> now = saving_.GetNewRef();
  if (now == nullptr) return;
  before = std::move(*saving);
  *saving = std::move(now);
}

std::string Source::ReaderToWarnOf() {
  // Each read beside a stage comes here.
  if (!may_warn_.load(std::memory_order_relaxed) ||
      !may_warn_.exchange(false)) {
    return "";
  }
  for (const core::RefCountPtr<SourceReader>& reader : Readers()) {
    if (!reader->YieldsToOthers()) return reader->name();
  }
  return "";
}

Status Source::TakeWaiting(SourceReader* reader, std::vector<Waiting>* waiting,
                           core::RefCountPtr<RunHolds>* saving) {
  if (num_restored_ == 0) return OkStatus();
  std::shared_ptr<const std::atomic<int64_t>> changed_at;
  {
    mutex_lock l(mu_);
    changed_at = changed_at_;
  }
  TF_RETURN_IF_ERROR(TakeWaitingHere(reader, waiting));
  if (changed_at == nullptr) return OkStatus();
  for (const std::shared_ptr<Source>& other : Sources()->All()) {
    {
      mutex_lock l(other->mu_);
      if (other->changed_at_ != changed_at ||
          other->restored_.count(reader->name()) == 0) {
        continue;
      }
    }
    other->AddReader(reader, saving);
    TF_RETURN_IF_ERROR(other->TakeWaitingHere(reader, waiting));
  }
  return OkStatus();
}

Status Source::TakeWaitingHere(SourceReader* reader,
                               std::vector<Waiting>* waiting) {
  mutex_lock l(mu_);
  const auto restored = restored_.find(reader->name());
  if (restored == restored_.end()) return OkStatus();
  TF_RETURN_IF_ERROR(reader->Check(restored->second));
  if (!restored->second.empty()) {
    Waiting& here = waiting->emplace_back();
    here.records = std::move(restored->second);
    here.reads.Add(shared_from_this(), version_);
    here.restored_in = changed_in_;
  }
  restored_.erase(restored);
  CountKept();
  return OkStatus();
}

void Source::GiveBack(int64_t version, Element element, int64_t order) {
  mutex_lock l(mu_);
  if (version != version_) return;
  auto place = given_back_.end();
  while (place != given_back_.begin() && std::prev(place)->order > order) {
    --place;
  }
  given_back_.insert(place, {std::move(element), order});
  CountKept();
}

void GiveBack(std::vector<ReadElement> elements) {
  for (ReadElement& element : elements) {
    const auto& [source, version] = element.from;
    source->GiveBack(version, std::move(element.tensors), element.order);
  }
}

std::optional<Source::OrderedElement> Source::TakeGivenBack(int64_t version) {
  mutex_lock l(mu_);
  if (given_back_.empty() || version != version_) return std::nullopt;
  OrderedElement element = std::move(given_back_.front());
  given_back_.pop_front();
  CountKept();
  return element;
}

std::vector<Source::OrderedElement> Source::GivenBack() const {
  mutex_lock l(mu_);
  return {given_back_.begin(), given_back_.end()};
}

Status Source::CheckNoneWaits(const SourceReader* reader) const {
  mutex_lock l(mu_);
  for (const auto& [stage, records] : restored_) {
    if (records.empty()) continue;
    // It may take records of `reader`.
    if (reader != nullptr && SourceReader::Exists(stage)) continue;
    return errors::InvalidArgument(
        "The checkpoint has ", records.size(), " records of stage '", stage,
        "', which come before the restored position, but ",
        reader == nullptr ? "something else than a stage"
                          : "another stage, '" + reader->name() + "',",
        " reads the iterator first. Restore it with the model and the settings "
        "of SmartStage that saved it, or restore only the variables.");
  }
  return OkStatus();
}

void Source::SetInitializer(std::string name) {
  mutex_lock l(mu_);
  initializer_ = std::move(name);
}

std::string Source::initializer() const {
  mutex_lock l(mu_);
  return initializer_;
}

void Source::HoldPosition(HeldPosition held) {
  mutex_lock l(mu_);
  held_ = std::move(held);
  CountKept();
}

std::optional<Source::HeldPosition> Source::ClaimPosition(
    const std::string& initializer) {
  mutex_lock l(mu_);
  if (!held_.has_value() || held_->initializer != initializer) {
    return std::nullopt;
  }
  ++claims_;
  return held_;
}

void Source::EndClaim() {
  mutex_lock l(mu_);
  --claims_;
  claims_changed_.notify_all();
}

bool Source::IsClaimed() const {
  mutex_lock l(mu_);
  return claims_ > 0;
}

void Source::AwaitEndOfClaims(CancellationManager* cancellation) {
  const CancellationToken token = cancellation->get_cancellation_token();
  bool cancelled = false;
  if (!cancellation->RegisterCallback(token, [this, &cancelled] {
        mutex_lock l(mu_);
        cancelled = true;
        claims_changed_.notify_all();
      })) {
    return;  // The cancellation has begun.
  }
  {
    mutex_lock l(mu_);
    while (claims_ > 0 && !cancelled) claims_changed_.wait(l);
  }
  cancellation->DeregisterCallback(token);
}

void Source::ReleasePosition(int64_t version, bool is_restored) {
  std::optional<HeldPosition> released;
  {
    mutex_lock l(mu_);
    if (version == kNoDataset || version != version_) return;
    released.swap(held_);
    CountKept();
  }
  if (!released.has_value()) return;
  for (const std::shared_ptr<Source>& other : Sources()->All()) {
    mutex_lock l(other->mu_);
    if (other->held_.has_value() &&
        other->held_->restored_in == released->restored_in &&
        (is_restored || other->held_->is_given)) {
      other->held_.reset();
      other->CountKept();
    }
  }
}

void Source::CountKept() {
  const int kept = static_cast<int>(given_back_.size() + restored_.size()) +
                   (held_.has_value() ? 1 : 0) + (is_read_ahead_ ? 1 : 0);
  num_kept_ += kept - kept_;
  kept_ = kept;
  const int waiting = static_cast<int>(restored_.size());
  num_restored_ += waiting - waiting_;
  waiting_ = waiting;
}

}  // namespace staging
}  // namespace tensorflow
