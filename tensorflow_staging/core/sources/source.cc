// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/source.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/address_map.h"

namespace tensorflow {
namespace staging {
namespace {

// By the address of the iterator.
AddressMap<Source>* Sources() {
  static auto* const sources = new AddressMap<Source>;
  return sources;
}

}  // namespace

std::atomic<int> Source::num_read_ahead_{0};

std::shared_ptr<Source> Source::Of(const void* iterator) {
  std::shared_ptr<Source> found = Find(iterator);
  if (found != nullptr) return found;
  return Sources()->Add(iterator, std::make_shared<Source>());
}

std::shared_ptr<Source> Source::Find(const void* iterator) {
  return Sources()->Find(iterator);
}

void Source::Forget(const void* iterator) {
  const std::shared_ptr<Source> source = Sources()->Remove(iterator);
  // The holders of the entries own the source, too.
  if (source != nullptr) source->Clear();
}

void Source::Clear() {
  std::deque<Ledger::Entry> entries;  // Destroyed without the lock.
  mutex_lock l(mu_);
  entries = ledger_.Clear();
}

void Source::Prune() {
  Ledger::Removed pruned;  // Destroyed without the lock.
  mutex_lock l(mu_);
  ledger_.Prune(&pruned);
}

std::shared_ptr<const Outcome> Source::ForgetBack() {
  Ledger::Removed forgotten;  // Destroyed without the lock.
  mutex_lock l(mu_);
  ledger_.Prune(&forgotten);
  const int64_t first = ledger_.FirstBack();
  if (first == ledger_.end()) return nullptr;
  const std::shared_ptr<const Outcome> outcome = ledger_[first].outcome;
  ledger_.RemoveFrom(first, &forgotten);
  return outcome;
}

std::vector<std::shared_ptr<Source>> Source::All() { return Sources()->All(); }

Source::~Source() {
  if (is_read_ahead()) --num_read_ahead_;
}

void Source::NoteReadAhead() {
  if (!is_read_ahead() && !is_read_ahead_.exchange(true)) ++num_read_ahead_;
}

StatusOr<int64_t> Source::AwaitTurn(CancellationManager* cancellation) {
  {
    mutex_lock l(mu_);
    if (MayTakeTurn()) return turn_ = ++last_turn_;
  }
  bool is_cancelled = false;
  const CancellationToken token = cancellation->get_cancellation_token();
  if (!cancellation->RegisterCallback(token, [this, &is_cancelled] {
        mutex_lock l(mu_);
        is_cancelled = true;
        turn_ended_.NotifyAll();
      })) {
    return errors::Cancelled("The read of an iterator was cancelled.");
  }
  StatusOr<int64_t> turn =
      errors::Cancelled("The read of an iterator was cancelled.");
  {
    mutex_lock l(mu_);
    ++waiting_;
    while (!MayTakeTurn() && !is_cancelled) turn_ended_.Wait(&mu_);
    --waiting_;
    if (!is_cancelled) turn = turn_ = ++last_turn_;
  }
  cancellation->DeregisterCallback(token);
  return turn;
}

void Source::EndTurn(int64_t turn) {
  mutex_lock l(mu_);
  if (overtaken_turn_ == turn) overtaken_turn_ = 0;
  if (turn_ != turn) return;
  turn_ = 0;
  if (waiting_ > 0) turn_ended_.NotifyAll();
}

Source::Got Source::TakeBack(int64_t version,
                             const std::shared_ptr<ReadSet>& reads,
                             std::shared_ptr<const Outcome>* outcome) {
  Ledger::Removed pruned;  // Destroyed without the lock.
  mutex_lock l(mu_);
  if (version != version_ || (reads != nullptr && reads->is_stale())) {
    return Got::kStale;
  }
  ledger_.Prune(&pruned);
  const int64_t number = ledger_.FirstBack();
  return number == ledger_.end() ? Got::kNothing : Give(number, reads, outcome);
}

Source::Got Source::Enter(int64_t version,
                          const std::shared_ptr<ReadSet>& reads,
                          std::shared_ptr<const Outcome>* outcome) {
  mutex_lock l(mu_);
  if (version != version_) return Got::kStale;
  // If no entry is back, this is the number of the one that is added.
  const int64_t number = ledger_.FirstBack();
  ledger_.Add(*outcome);
  // The claim is for all that the iterator has yielded.
  return claims_ > 0 ? Got::kStale : Give(number, reads, outcome);
}

Source::Got Source::Give(int64_t number, const std::shared_ptr<ReadSet>& reads,
                         std::shared_ptr<const Outcome>* outcome) {
  *outcome = ledger_[number].outcome;
  std::shared_ptr<ReadSet> reader = reads;
  if (reader == nullptr) {
    reader = ReadSet::MakeUsed();
  } else if (!reader->Add({shared_from_this(), version_, number, *outcome})) {
    return Got::kStale;
  }
  ledger_.SetHolder(number, std::move(reader));
  return Got::kEntry;
}

Outcomes Source::UnusedAt(int64_t moment) {
  Ledger::Removed pruned;
  mutex_lock l(mu_);
  ledger_.Prune(&pruned);
  return ledger_.UnusedAt(moment);
}

bool Source::HasBeenUsed() const {
  mutex_lock l(mu_);
  return has_been_used_ || ledger_.HasBeenUsed();
}

void Source::BeginUse() {
  NoteReadAhead();
  Ledger::Removed pruned;
  mutex_lock l(mu_);
  ledger_.Prune(&pruned);
  ledger_.BeginUse();
  has_been_used_ = false;
}

void Source::NoteUse() {
  mutex_lock l(mu_);
  has_been_used_ = true;
}

void Source::BeginClaim() {
  mutex_lock l(mu_);
  ++claims_;
}

void Source::EndClaim() {
  mutex_lock l(mu_);
  --claims_;
  turn_ended_.NotifyAll();
}

bool Source::IsLastVersionRead() const {
  mutex_lock l(mu_);
  return overtaken_turn_ != 0;
}

HeldEntry Source::FirstEntry() {
  mutex_lock l(mu_);
  return {shared_from_this(), version_, ledger_.begin(), nullptr};
}

void Source::GiveBackFrom(const HeldEntry& entry, MakeStale make_stale) {
  std::vector<std::shared_ptr<ReadSet>>
      released;  // Destroyed without the lock.
  mutex_lock l(mu_);
  if (entry.version != version_) return;
  for (int64_t i = std::max(entry.number, ledger_.begin()); i < ledger_.end();
       ++i) {
    const std::shared_ptr<ReadSet>& holder = ledger_[i].holder;
    if (holder == nullptr || !make_stale(holder)) continue;
    released.push_back(ledger_.SetHolder(i, nullptr));
  }
}

std::deque<Ledger::Entry> Source::BeginVersion(Outcomes restored) {
  mutex_lock l(mu_);
  ++version_;
  has_been_used_ |= ledger_.HasBeenUsed();
  std::deque<Ledger::Entry> entries = ledger_.Clear();
  for (auto& outcome : restored) ledger_.Add(std::move(outcome));
  if (turn_ == read_) {
    // Who reads the old iterator does not hold up reads of the new one.
    overtaken_turn_ = turn_ == staged_read_ ? turn_ : 0;
    turn_ = 0;
    turn_ended_.NotifyAll();
  }
  return entries;
}

void Source::HandOver(const HeldEntry& entry,
                      const std::shared_ptr<ReadSet>& to) {
  mutex_lock l(mu_);
  if (entry.version != version_ || !ledger_.Has(entry.number)) return;
  if (to->Add(entry)) ledger_.SetHolder(entry.number, to);
}

}  // namespace staging
}  // namespace tensorflow
