// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/source.h"

#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
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

// The names of the stages of this process.
struct StageNames {
  mutex mu;
  std::multiset<std::string> names TF_GUARDED_BY(mu);
};

StageNames* GetStageNames() {
  static auto* const names = new StageNames;
  return names;
}

bool IsStage(const std::string& name) {
  StageNames* const stages = GetStageNames();
  mutex_lock l(stages->mu);
  return stages->names.count(name) > 0;
}

thread_local core::WeakPtr<SourceReader>* resumed_stage = nullptr;

}  // namespace

core::WeakPtr<SourceReader>* ResumedStage() { return resumed_stage; }

ScopedResumedStage::ScopedResumedStage(core::WeakPtr<SourceReader>* stage)
    : stage_(&resumed_stage, stage) {}

SourceReader::SourceReader(std::string name) : name_(std::move(name)) {
  StageNames* const stages = GetStageNames();
  mutex_lock l(stages->mu);
  stages->names.insert(name_);
}

SourceReader::~SourceReader() {
  StageNames* const stages = GetStageNames();
  mutex_lock l(stages->mu);
  stages->names.erase(stages->names.find(name_));
}

void SourceReader::AddTaker(SourceReader* taker) {
  mutex_lock l(takers_mu_);
  for (auto& [address, weak] : takers_) {
    if (address != taker) continue;
    // The one before, which is gone, may have had the same address.
    weak = core::WeakPtr<SourceReader>(taker);
    return;
  }
  takers_.emplace_back(taker, core::WeakPtr<SourceReader>(taker));
}

std::vector<core::RefCountPtr<SourceReader>> SourceReader::Takers() {
  std::vector<core::RefCountPtr<SourceReader>> takers;
  mutex_lock l(takers_mu_);
  for (const auto& [address, weak] : takers_) {
    core::RefCountPtr<SourceReader> taker = weak.GetNewRef();
    if (taker != nullptr) takers.push_back(std::move(taker));
  }
  return takers;
}

Status SourceReader::AwaitPause(const void* step_container,
                                CancellationManager* cancellation) {
  Status paused;
  Notification done;
  Pause(step_container, cancellation, [&paused, &done](const Status& status) {
    paused = status;
    done.Notify();
  });
  done.WaitForNotification();
  return paused;
}

std::atomic<int64_t> Source::clock_{1};
std::atomic<int64_t> Source::last_order_{0};
std::atomic<int> Source::num_kept_{0};
std::atomic<int> Source::num_restored_{0};

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

void ReadSet::NoteUse() const {
  if (!Source::AnyKept()) return;
  for (const auto& [source, version] : reads_) {
    source->ReleasePosition(version, has_restored_);
  }
}

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
  // The last reference to a reader must not go with the lock held.
  std::vector<core::RefCountPtr<SourceReader>> alive;
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
  CountKept();
  core::RefCountPtr<RunHolds> now = saving_.GetNewRef();
  if (now != nullptr) *saving = std::move(now);
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

std::optional<Source::OrderedElement> Source::TakeGivenBack() {
  mutex_lock l(mu_);
  if (given_back_.empty()) return std::nullopt;
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
    if (reader != nullptr && IsStage(stage)) continue;
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
