// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/keyed_turns.h"

#include <atomic>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "gtest/gtest.h"

namespace tensorflow {
namespace staging {
namespace {

using Turns = KeyedTurns<std::string>;

TEST(KeyedTurnsTest, OtherKeysDoNotWait) {
  Turns turns;
  const Turns::Turn first(&turns, "first");
  std::thread([&turns]() {
    const Turns::Turn second(&turns, "second");
  }).join();
}

TEST(KeyedTurnsTest, OneThreadHasItsTurnWithAKey) {
  Turns turns;
  std::atomic<int> inside = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&]() {
      for (int j = 0; j < 20; ++j) {
        const Turns::Turn turn(&turns, "key");
        EXPECT_EQ(++inside, 1);
        std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
