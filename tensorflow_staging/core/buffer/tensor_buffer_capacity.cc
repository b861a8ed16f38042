// SPDX-License-Identifier: Apache-2.0
//
// The part of TensorBuffer that decides how many records it holds.

#include <algorithm>
#include <chrono>  // NOLINT
#include <cstdint>
#include <optional>

#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/buffer/tensor_buffer_callbacks.h"

namespace tensorflow {
namespace staging {

int64_t TensorBuffer::NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t TensorBuffer::Capacity() const {
  return TunesCapacity() ? tuner_.capacity() : options_.capacity;
}

int64_t TensorBuffer::Room() const {
  return TunesCapacity() ? tuner_.capacity() : slow_start_.room();
}

void TensorBuffer::CountFull() {
  if (TunesCapacity()) {
    tuner_.OnFull(NowMicros());
  } else if (slow_start_.active()) {
    slow_start_.OnFull();
    if (Room() < Capacity() && !program_watch_.has_value()) WatchProgram();
  }
}

void TensorBuffer::CountTake() {
  const int64_t now = NowMicros();
  steps_.OnTake(now, now);
  if (TunesCapacity()) {
    tuner_.OnTake(records_.size(), now);
  } else if (slow_start_.active()) {
    slow_start_.OnTake(records_.size(), now);
  }
}

void TensorBuffer::CountWaitingTake(const WaitingTake& take) {
  const int64_t now = NowMicros();
  const int64_t waited = now - take.since_micros;
  take_waits_.Add(waited);
  steps_.OnTake(take.since_micros, now);
  if (TunesCapacity()) {
    tuner_.OnTakeWaited(waited, now);
  } else if (slow_start_.active()) {
    slow_start_.OnTakeWaited(waited, now);
  }
}

void TensorBuffer::WatchProgram() {
  program_watch_ = next_id_++;
  const int64_t left = slow_start_.PauseBegins() - NowMicros();
  timer_.Add(*program_watch_, std::max<int64_t>(left, 0));
}

void TensorBuffer::FillIfProgramPauses(DueCallbacks* due) {
  program_watch_.reset();
  if (waiting_puts_.empty() || Room() == Capacity()) return;
  if (NowMicros() < slow_start_.PauseBegins()) {
    WatchProgram();
    return;
  }
  slow_start_.OnPause();
  AdmitPuts(due);
}

std::optional<int64_t> TensorBuffer::NewlySettled() {
  if (!TunesCapacity() || !tuner_.settled() ||
      tuner_.capacity() == reported_capacity_) {
    return std::nullopt;
  }
  reported_capacity_ = tuner_.capacity();
  return reported_capacity_;
}

void TensorBuffer::LogSettled(std::optional<int64_t> capacity) const {
  if (!capacity.has_value()) return;
  LOG(INFO) << "Stage '" << options_.name << "' has settled on a capacity of "
            << *capacity << " record" << (*capacity == 1 ? "" : "s")
            << " (within " << (options_.capacity_bytes >> 20) << " MiB).";
}

}  // namespace staging
}  // namespace tensorflow
