// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_IDLE_TIME_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_IDLE_TIME_H_

#include <sched.h>

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tensorflow {
namespace staging {

// Returns for how many microseconds the cores on which the calling thread may
// run have idled since the machine started, all cores together. Two calls tell
// whether cores had time to spare between them, whoever used the others.
// Nothing if the kernel does not say so.
//
// A limit on the CPU time of a container (cpu.max of its control group) is not
// seen: what it withholds counts as idle.
std::optional<int64_t> IdleMicros();

// Does the same for the text of /proc/stat, some cores, and the number of the
// text's ticks in a second.
std::optional<int64_t> IdleMicros(absl::string_view proc_stat,
                                  const cpu_set_t& cores,
                                  int64_t ticks_per_second);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_IDLE_TIME_H_
