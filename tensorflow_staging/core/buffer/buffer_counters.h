// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_BUFFER_COUNTERS_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_BUFFER_COUNTERS_H_

#include <cstdint>

#include "tensorflow_staging/core/buffer/step_times.h"
#include "tensorflow_staging/core/buffer/wait_times.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"

namespace tensorflow {
namespace staging {

// What a buffer has counted since its construction: put is taken, discarded and
// what the buffer holds. Not thread-safe.
struct BufferCounters {
  int64_t put = 0;        // Records that the buffer accepted.
  int64_t taken = 0;      // Records that takes received.
  int64_t dropped = 0;    // Records whose put timed out.
  int64_t discarded = 0;  // Records that were stale, or that Discard dropped.
  // Records that were put from the host for want of a device's memory.
  int64_t kept_on_host = 0;
  // Of the puts that `put` counts, and of the takes.
  WaitTimes put_waits;
  WaitTimes take_waits;
  StepTimes steps;

  void Write(BufferStats* stats) const {
    stats->set_put(put);
    stats->set_taken(taken);
    stats->set_dropped(dropped);
    stats->set_discarded(discarded);
    stats->set_kept_on_host(kept_on_host);
    *stats->mutable_put_waits() = put_waits.Summarize(put);
    *stats->mutable_take_waits() = take_waits.Summarize(taken);
    stats->mutable_steps()->set_count(steps.count());
    stats->mutable_steps()->set_total_micros(steps.total_micros());
    stats->mutable_steps()->set_wait_micros(steps.wait_micros());
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_BUFFER_COUNTERS_H_
