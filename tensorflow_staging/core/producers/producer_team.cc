// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/producer_team.h"

#include <algorithm>

namespace tensorflow {
namespace staging {
namespace {

// How long a producer that has found the end of the data lets others finish
// runs that they have begun: far longer than an error takes to arrive.
constexpr std::chrono::milliseconds kErrorsFirst(20);

}  // namespace

bool ProducerTeam::SetActive(int active) {
  mutex_lock l(mu_);
  active_ = active;
  changed_.NotifyAll();
  return !stopped_;
}

bool ProducerTeam::Stop() {
  mutex_lock l(mu_);
  changed_.NotifyAll();
  return !stopped_.exchange(true);
}

ProducerTeam::Counts ProducerTeam::GetCounts() const {
  Counts counts;
  counts.records = records_;
  counts.ignored = ignored_;
  counts.timed_records = timed_records_;
  counts.record_micros = record_micros_;
  mutex_lock l(mu_);
  counts.running = size_ > 0 && ends_before_record_ >= ends_;
  counts.threads = counts.running ? std::min<int>(size_, active_) : 0;
  return counts;
}

void ProducerTeam::Join() {
  mutex_lock l(mu_);
  ++size_;
}

void ProducerTeam::Leave() {
  mutex_lock l(mu_);
  --size_;
  one_has_left_ = true;
  changed_.NotifyAll();
}

void ProducerTeam::Wake() {
  mutex_lock l(mu_);
  changed_.NotifyAll();
}

bool ProducerTeam::BeginRun(int index, const RegionRuns& runs) {
  if (stopped()) return false;
  if (index < active_.load(std::memory_order_relaxed) && !runs.is_bounded()) {
    ++producing_;
    return true;
  }
  mutex_lock l(mu_);
  while (!stopped_) {
    if (index >= active_) {
      if (one_has_left_) return false;
      changed_.Wait(&mu_);
      continue;
    }
    // Counted before it reads producing_, for EndRun.
    ++held_up_;
    const bool may_begin = runs.MayBegin(producing_);
    if (!may_begin) changed_.Wait(&mu_);
    --held_up_;
    if (may_begin) {
      ++producing_;
      return true;
    }
  }
  return false;
}

void ProducerTeam::EndRun() {
  --producing_;
  if (held_up_ > 0) Wake();
}

bool ProducerTeam::Pause(std::chrono::milliseconds time) {
  mutex_lock l(mu_);
  if (!stopped_ && time > time.zero()) changed_.WaitFor(&mu_, time);
  return !stopped_;
}

ProducerTeam::Run::Run(ProducerTeam* team, int index, const RegionRuns& runs)
    : team_(team),
      has_begun_(team->BeginRun(index, runs)),
      records_before_(team->records_),
      ends_before_(team->ends_) {}

void ProducerTeam::Run::CountRecord(std::optional<int64_t> micros) {
  if (micros.has_value()) {
    team_->timed_records_.fetch_add(1, std::memory_order_relaxed);
    team_->record_micros_.fetch_add(*micros, std::memory_order_relaxed);
  }
  team_->records_.fetch_add(1, std::memory_order_relaxed);
  if (ends_before_ >
      team_->ends_before_record_.load(std::memory_order_relaxed)) {
    team_->ends_before_record_ = ends_before_;
  }
  if (team_->num_sources_ > 1) {
    mutex_lock l(team_->mu_);
    team_->ended_sources_.clear();
  }
}

bool ProducerTeam::Run::EndSource(const std::string& source, bool* run_again) {
  if (team_->num_sources_ == 1) return true;
  mutex_lock l(team_->mu_);
  std::set<std::string>& ended = team_->ended_sources_;
  // After a record of another source, which may be the first one of other data,
  // this source may have data again.
  const bool is_current = team_->records_ == records_before_;
  *run_again = !is_current && !ended.empty();
  // Wake the producers of other ended sources, which check again whether all
  // sources have ended.
  if (is_current && ended.insert(source).second) team_->changed_.NotifyAll();
  if (ended.size() < team_->num_sources_) return false;
  ended.clear();
  return true;
}

void ProducerTeam::CountEnd(bool is_error) {
  ++ends_;
  if (is_error) ++failures_;
}

bool ProducerTeam::LetErrorsComeFirst() {
  const int64_t failures_before = failures_;
  const auto deadline = std::chrono::steady_clock::now() + kErrorsFirst;
  mutex_lock l(mu_);
  while (producing_ > 1 && failures_ == failures_before && !stopped_ &&
         std::chrono::steady_clock::now() < deadline) {
    changed_.WaitFor(&mu_, std::chrono::milliseconds(1));
  }
  return failures_ != failures_before;
}

}  // namespace staging
}  // namespace tensorflow
