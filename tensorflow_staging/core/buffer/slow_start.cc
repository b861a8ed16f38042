// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/slow_start.h"

#include <algorithm>

namespace tensorflow {
namespace staging {

void SlowStart::OnTakeWaited(int64_t waited_micros, int64_t now_micros) {
  pauses_.OnTake(now_micros - waited_micros, now_micros);
  CountTake(/*held=*/0);
  if (was_full_) room_ *= 2;
  was_full_ = false;
}

void SlowStart::OnTake(int64_t left, int64_t now_micros) {
  pauses_.OnTake(now_micros, now_micros);
  CountTake(left + 1);
}

void SlowStart::CountTake(int64_t held) {
  if (fills_freely_) {
    fills_freely_ = false;
    was_full_ = false;
    room_ = std::max(room_, held);
  }
  if (++takes_ % kTakesPerRecord == 0) ++room_;
}

}  // namespace staging
}  // namespace tensorflow
