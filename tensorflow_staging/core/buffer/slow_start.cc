// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/slow_start.h"

#include <algorithm>

namespace tensorflow {
namespace staging {

void SlowStart::OnTakeWaited() {
  CountTake(/*held=*/0);
  if (was_full_ && active()) room_ *= 2;
  was_full_ = false;
}

void SlowStart::CountTake(int64_t held) {
  if (fills_freely_) {
    fills_freely_ = false;
    was_full_ = false;
    room_ = std::max(room_, held);
  }
  if (++takes_ % kTakesPerRecord == 0 && active()) ++room_;
}

}  // namespace staging
}  // namespace tensorflow
