// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/step_times.h"

namespace tensorflow {
namespace staging {

void StepTimes::OnTake(int64_t began_micros, int64_t ended_micros) {
  const bool paused = pauses_.OnTake(began_micros, ended_micros);
  if (has_begun_ && !paused) {
    ++count_;
    total_micros_ += ended_micros - last_micros_;
    wait_micros_ += ended_micros - began_micros;
  }
  has_begun_ = true;
  last_micros_ = ended_micros;
}

}  // namespace staging
}  // namespace tensorflow
