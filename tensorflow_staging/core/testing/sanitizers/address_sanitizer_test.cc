// SPDX-License-Identifier: Apache-2.0
//
// Tests that --config=asan finds errors, in the overlay and in tests, so that a
// test that passes under it means something.

#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <memory>

#include "tensorflow_staging/core/buffer/wait_times.h"

namespace tensorflow {
namespace staging {
namespace {

class AddressSanitizerTest : public ::testing::Test {
 protected:
  // Other threads of the process do not survive a fork.
  AddressSanitizerTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(AddressSanitizerTest, FindsAUseAfterFreeInTheOverlay) {
  auto times = std::make_unique<WaitTimes>();
  WaitTimes* const freed = times.get();
  times.reset();
  EXPECT_DEATH(freed->Add(1), "heap-use-after-free.*WaitTimes::Add");
}

TEST_F(AddressSanitizerTest, FindsAWriteBeyondAnArray) {
  volatile int index = 4;
  EXPECT_DEATH(
      {
        auto values = std::make_unique<int[]>(4);
        values[index] = 1;
      },
      "heap-buffer-overflow");
}

TEST_F(AddressSanitizerTest, FindsALeak) {
  // The address is lost when it is overwritten.
  static void* volatile leaked;
  EXPECT_EXIT(
      {
        leaked = std::malloc(1234);
        leaked = nullptr;
        std::exit(0);
      },
      ::testing::ExitedWithCode(1), "Direct leak of 1234 byte");
}

TEST_F(AddressSanitizerTest, FindsUndefinedBehavior) {
  volatile int number = INT_MAX;
  EXPECT_DEATH(number = number + 1, "signed integer overflow");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
