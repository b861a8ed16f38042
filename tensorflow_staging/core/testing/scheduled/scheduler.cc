// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/scheduled/scheduler.h"

#include <algorithm>
#include <utility>

namespace tensorflow {
namespace scheduled {
namespace {

// A history takes some ten thousand steps.
constexpr int64_t kMostSteps = 3000000;
constexpr int64_t kStepNanos = 1000;

Scheduler* current = nullptr;
int64_t last_number = 0;

}  // namespace

Scheduler* Scheduler::Current() { return current; }

Scheduler::Scheduler(uint64_t seed)
    : number_(++last_number),
      random_(seed),
      switch_one_in_(random_.Of<int64_t>({1, 1, 2, 4, 16, 64})),
      slow_one_in_(random_.Of<int64_t>({kNever, 8, 32, 128})),
      time_one_in_(random_.Of<int64_t>({kNever, kNever, 200})) {}

Scheduler::~Scheduler() {
  // What the threads that do not end have on their stacks stays there.
  if (!threads_.empty()) new auto(std::move(threads_));
}

std::string Scheduler::Run(std::function<void()> main) {
  current = this;
  Start("program", std::move(main));
  std::string failure;
  while (!threads_.empty()) {
    if (time_one_in_ != kNever && random_.OneIn(time_one_in_)) PassTime();
    SimulatedThread* const thread = Choose();
    if (thread == nullptr) {
      if (PassTime()) continue;
      failure = Describe("No thread can go on.");
      break;
    }
    if (steps_ > kMostSteps) {
      failure = Describe("The threads do not end.");
      break;
    }
    running_ = thread;
    thread->fiber_.Enter();
    running_ = nullptr;
    if (thread->has_ended()) {
      threads_.erase(std::find_if(
          threads_.begin(), threads_.end(),
          [thread](const auto& other) { return other.get() == thread; }));
    }
  }
  current = nullptr;
  return failure;
}

std::shared_ptr<SimulatedThread> Scheduler::Start(std::string name,
                                                  std::function<void()> body) {
  std::shared_ptr<SimulatedThread> thread(
      new SimulatedThread(std::move(name), std::move(body)));
  threads_.push_back(thread);
  return thread;
}

void Scheduler::Point() {
  ++steps_;
  now_ += kStepNanos;
  if (switch_one_in_ > 1 && !random_.OneIn(switch_one_in_) &&
      steps_ < kMostSteps) {
    return;
  }
  MakeSlow(running_);
  running_->fiber_.Leave();
}

bool Scheduler::Wait(const char* what, std::chrono::nanoseconds time) {
  ++steps_;
  SimulatedThread* const thread = running_;
  thread->waits_for_ = what;
  thread->wakes_at_ =
      time.count() > kNever - now_ ? kNever : now_ + time.count();
  thread->has_timed_out_ = false;
  thread->fiber_.Leave();
  return !thread->has_timed_out_;
}

void Scheduler::Wake(SimulatedThread* thread) {
  if (thread->waits_for_ == nullptr) return;
  thread->waits_for_ = nullptr;
  MakeSlow(thread);
}

void Scheduler::MakeSlow(SimulatedThread* thread) {
  if (slow_one_in_ == kNever || !random_.OneIn(slow_one_in_)) return;
  thread->sleeps_until_ = steps_ + random_.Below(500);
}

SimulatedThread* Scheduler::Choose() {
  ready_.clear();
  SimulatedThread* first = nullptr;
  for (const auto& thread : threads_) {
    if (thread->waits_for_ != nullptr) continue;
    if (thread->sleeps_until_ <= steps_) {
      ready_.push_back(thread.get());
    } else if (first == nullptr ||
               thread->sleeps_until_ < first->sleeps_until_) {
      first = thread.get();
    }
  }
  if (ready_.empty()) return first;
  const int64_t chosen = random_.Below(ready_.size());
  fingerprint_ = Random::Mix(fingerprint_ + chosen * 1000 + ready_.size());
  return ready_[chosen];
}

bool Scheduler::PassTime() {
  int64_t earliest = kNever;
  for (const auto& thread : threads_) {
    if (thread->waits_for_ != nullptr) {
      earliest = std::min(earliest, thread->wakes_at_);
    }
  }
  if (earliest == kNever) return false;
  now_ = std::max(now_, earliest);
  for (const auto& thread : threads_) {
    if (thread->waits_for_ == nullptr || thread->wakes_at_ > now_) continue;
    thread->has_timed_out_ = true;
    Wake(thread.get());
  }
  return true;
}

std::string Scheduler::Describe(const std::string& failure) const {
  std::string text = failure;
  for (const auto& thread : threads_) {
    text += "\n  " + thread->name() + " " +
            (thread->waits_for_ == nullptr
                 ? std::string("goes on")
                 : std::string("waits for ") + thread->waits_for_);
  }
  return text;
}

}  // namespace scheduled
}  // namespace tensorflow
