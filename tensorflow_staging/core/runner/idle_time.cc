// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/idle_time.h"

#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMicrosPerSecond = 1000000;

// The fields of a core's line (man 5 proc). A core that waits only for input or
// output can compute something else.
constexpr size_t kIdleField = 4;
constexpr size_t kIoWaitField = 5;

}  // namespace

std::optional<int64_t> IdleMicros(absl::string_view proc_stat,
                                  const cpu_set_t& cores,
                                  int64_t ticks_per_second) {
  int64_t ticks = 0;
  bool found = false;
  for (absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    absl::string_view number = fields.empty() ? "" : fields[0];
    int core;
    // The first line, "cpu", is the sum of all cores.
    if (!absl::ConsumePrefix(&number, "cpu") ||
        !absl::SimpleAtoi(number, &core) || core < 0 || core >= CPU_SETSIZE ||
        !CPU_ISSET(core, &cores)) {
      continue;
    }
    int64_t idle, io_wait;
    if (fields.size() <= kIoWaitField ||
        !absl::SimpleAtoi(fields[kIdleField], &idle) ||
        !absl::SimpleAtoi(fields[kIoWaitField], &io_wait)) {
      return std::nullopt;
    }
    ticks += idle + io_wait;
    found = true;
  }
  if (!found || ticks_per_second <= 0) return std::nullopt;
  return ticks * (kMicrosPerSecond / ticks_per_second);
}

std::optional<int64_t> IdleMicros() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return std::nullopt;
  // The file has no size that could be read first.
  std::ifstream file("/proc/stat");
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  return IdleMicros(text, cores, sysconf(_SC_CLK_TCK));
}

}  // namespace staging
}  // namespace tensorflow
