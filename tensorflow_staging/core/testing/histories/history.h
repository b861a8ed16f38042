// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_HISTORY_H_
#define TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_HISTORY_H_

#include <cstdint>
#include <string>

namespace tensorflow {
namespace staging {

struct HistoryOutcome {
  // What was wrong; empty if nothing was.
  std::string failure;
  // Differs if anything has happened in another order.
  uint64_t fingerprint = 0;
  int64_t scheduling_steps = 0;
};

// Runs a random program with stages and compares what it yields with the same
// program without them. What it does, and in which order its threads go on,
// depends on the seed alone. `is_traced` prints what happens.
HistoryOutcome RunHistory(uint64_t seed, bool is_traced);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_HISTORY_H_
