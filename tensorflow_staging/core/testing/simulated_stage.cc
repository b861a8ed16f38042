// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/simulated_stage.h"

#include <algorithm>
#include <cstdint>

namespace tensorflow {
namespace staging {

void SimulatedStage::BeginSteps() {
  program_.state = State::kAwaitsRecord;
  program_.since = now_;
}

void SimulatedStage::SetProducers(int count) {
  active_ = count;
  if (static_cast<size_t>(count) > producers_.size()) producers_.resize(count);
}

bool SimulatedStage::Run(double end) {
  first_has_put_ = false;
  while (!first_has_put_ && now_ < end) {
    for (int i = 0; i < active_; ++i) {
      if (producers_[i].state == State::kIdle) BeginRecord(i);
    }
    Settle();
    if (first_has_put_) break;
    // 1. Find out which work ends first.
    std::vector<Actor*> working;
    for (Actor& producer : producers_) {
      if (Works(producer)) working.push_back(&producer);
    }
    if (Works(program_)) working.push_back(&program_);
    const double speed =
        load_.computes && !working.empty()
            ? std::min(1.0, static_cast<double>(load_.cores) / working.size())
            : 1;
    double time = end - now_;
    for (const Actor* actor : working) {
      time = std::min(time, actor->left / speed);
    }
    // 2. Go there.
    now_ += time;
    if (load_.computes) totals_.cpu += time * speed * working.size();
    for (Actor* actor : working) {
      actor->left -= time * speed;
      // Less than a nanosecond is an error of rounding.
      if (actor->left < 1e-3) Finish(actor);
    }
  }
  return first_has_put_;
}

int64_t SimulatedStage::Capacity() const {
  return load_.capacity > 0 ? load_.capacity : capacity_.capacity();
}

double SimulatedStage::Varied(double millis) {
  std::uniform_real_distribution<double> varies(1 - load_.jitter,
                                                1 + load_.jitter);
  return 1000 * millis * varies(random_);
}

bool SimulatedStage::Works(const Actor& actor) const {
  return actor.state == State::kInSource || actor.state == State::kInRegion ||
         actor.state == State::kInStep;
}

void SimulatedStage::BeginRecord(int producer) {
  producers_[producer].state = State::kAwaitsSource;
  await_source_.push_back(producer);
  EnterSource();
}

void SimulatedStage::EnterSource() {
  if (!source_is_free_ || await_source_.empty()) return;
  Actor& producer = producers_[await_source_.front()];
  await_source_.pop_front();
  source_is_free_ = false;
  producer.state = State::kInSource;
  producer.left = Varied(load_.source);
}

void SimulatedStage::Finish(Actor* actor) {
  switch (actor->state) {
    case State::kInSource:
      actor->state = State::kInRegion;
      actor->left = Varied(load_.region);
      source_is_free_ = true;
      EnterSource();
      break;
    case State::kInRegion:
      actor->state = State::kAwaitsRoom;
      actor->since = now_;
      await_room_.push_back(actor - producers_.data());
      break;
    default:
      actor->state = State::kAwaitsRecord;
      actor->since = now_;
  }
  Settle();
}

void SimulatedStage::Settle() {
  bool changes = true;
  while (changes) {
    changes = false;
    if (!await_room_.empty() && records_ < Capacity()) {
      Put(await_room_.front());
      changes = true;
    }
    if (program_.state == State::kAwaitsRecord && records_ > 0) {
      Take();
      changes = true;
    }
  }
  if (!await_room_.empty()) capacity_.OnFull(static_cast<int64_t>(now_));
}

void SimulatedStage::Put(int producer) {
  await_room_.pop_front();
  ++records_;
  ++totals_.put;
  totals_.put_wait += now_ - producers_[producer].since;
  producers_[producer].state = State::kIdle;
  if (producer == 0) first_has_put_ = true;
  if (producer < active_) BeginRecord(producer);
}

void SimulatedStage::Take() {
  const double waited = now_ - program_.since;
  --records_;
  ++totals_.taken;
  totals_.take_wait += waited;
  const int64_t now = static_cast<int64_t>(now_);
  const int64_t waited_micros = static_cast<int64_t>(waited);
  const bool paused = steps_.OnTake(now - waited_micros, now);
  if (waited > 0) {
    capacity_.OnTakeWaited(waited_micros);
  } else {
    capacity_.OnTake(records_, paused);
  }
  program_.state = State::kInStep;
  program_.left = Varied(load_.step);
}

}  // namespace staging
}  // namespace tensorflow
