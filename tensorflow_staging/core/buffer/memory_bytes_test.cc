// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/memory_bytes.h"

#include <gtest/gtest.h>

namespace tensorflow {
namespace staging {
namespace {

TEST(MemoryBytesTest, DevicesAreInTheOrderOfTheirNames) {
  MemoryBytes bytes = {1, {{"GPU:1", 2}}};
  bytes.On("GPU:2") = 3;
  bytes.On("GPU:0") = 4;
  bytes.On("GPU:1") += 5;
  ASSERT_EQ(bytes.on_devices.size(), 3);
  EXPECT_EQ(bytes.on_devices[0].device, "GPU:0");
  EXPECT_EQ(bytes.on_devices[1].device, "GPU:1");
  EXPECT_EQ(bytes.on_devices[2].device, "GPU:2");
  const MemoryBytes& unchanged = bytes;
  EXPECT_EQ(unchanged.On("GPU:1"), 7);
  EXPECT_EQ(unchanged.On("GPU:3"), 0);
  EXPECT_EQ(bytes.Total(), 15);
}

TEST(MemoryBytesTest, WhatIsAddedCanBeSubtracted) {
  const MemoryBytes one = {1, {{"GPU:0", 2}}};
  const MemoryBytes other = {3, {{"GPU:0", 4}, {"GPU:1", 5}}};
  MemoryBytes sum = one;
  sum.Add(other);
  EXPECT_EQ(sum.on_host, 4);
  EXPECT_EQ(sum.On("GPU:0"), 6);
  EXPECT_EQ(sum.On("GPU:1"), 5);
  sum.Subtract(one);
  EXPECT_EQ(sum.on_host, other.on_host);
  EXPECT_EQ(sum.On("GPU:0"), 4);
  EXPECT_EQ(sum.On("GPU:1"), 5);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
