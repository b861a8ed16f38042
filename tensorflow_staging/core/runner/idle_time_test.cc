// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/idle_time.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>  // NOLINT
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <thread>  // NOLINT

#include "absl/strings/string_view.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kTicksPerSecond = 100;

// Two cores that have idled for 30 and 40 ticks, and waited for input or output
// for 3 and 4.
constexpr absl::string_view kTwoCores =
    "cpu  11 2 13 70 7 0 1 2 0 0\n"
    "cpu0 5 1 6 30 3 0 0 1 0 0\n"
    "cpu1 6 1 7 40 4 0 1 1 0 0\n"
    "intr 179173 0 0\n"
    "ctxt 12\n";

std::optional<int64_t> IdleOf(absl::string_view proc_stat,
                              std::initializer_list<int> cores,
                              int64_t ticks_per_second = kTicksPerSecond) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  return IdleMicros(proc_stat, set, ticks_per_second);
}

TEST(IdleTimeTest, CoresAreAddedUp) {
  EXPECT_EQ(IdleOf(kTwoCores, {0, 1}), 770000);
}

TEST(IdleTimeTest, OnlyGivenCoresCount) {
  EXPECT_EQ(IdleOf(kTwoCores, {1}), 440000);
  EXPECT_EQ(IdleOf(kTwoCores, {1, 7}), 440000);
}

TEST(IdleTimeTest, WhatIsNotSaidIsNotKnown) {
  EXPECT_EQ(IdleOf("", {0}), std::nullopt);
  EXPECT_EQ(IdleOf(kTwoCores, {7}), std::nullopt);
  EXPECT_EQ(IdleOf("cpu0 5 1 6 30\n", {0}), std::nullopt);
  EXPECT_EQ(IdleOf("cpu0 5 1 6 many 3 0\n", {0}), std::nullopt);
  EXPECT_EQ(IdleOf("cpu99999999999 5 1 6 30 3 0\n", {0}), std::nullopt);
  EXPECT_EQ(IdleOf("cpu-1 5 1 6 30 3 0\n", {0}), std::nullopt);
  EXPECT_EQ(IdleOf("cpu5000 5 1 6 30 3 0\n", {0}), std::nullopt);
  EXPECT_EQ(IdleOf(kTwoCores, {0, 1}, /*ticks_per_second=*/0), std::nullopt);
}

TEST(IdleTimeTest, ThisMachineIdlesNoLongerThanItsCoresExist) {
  const auto began = std::chrono::steady_clock::now();
  const std::optional<int64_t> before = IdleMicros();
  ASSERT_TRUE(before.has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::optional<int64_t> after = IdleMicros();
  ASSERT_TRUE(after.has_value());
  const int64_t passed = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::steady_clock::now() - began)
                             .count();
  // The kernel counts in ticks, and may take some of an idle core's back.
  constexpr int64_t kTickMicros = 1000000 / kTicksPerSecond;
  EXPECT_GE(*after + 2 * kTickMicros, *before);
  EXPECT_LE(*after - *before,
            (passed + 2 * kTickMicros) * std::thread::hardware_concurrency());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
