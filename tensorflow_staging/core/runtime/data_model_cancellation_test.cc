// SPDX-License-Identifier: Apache-2.0
//
// Tests the hook in the patched loop that tunes a dataset.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>  // NOLINT
#include <limits>
#include <memory>
#include <thread>  // NOLINT
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/model.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr std::chrono::milliseconds kSlow(20);
// By now each loop sleeps for about half a second, again and again.
constexpr std::chrono::milliseconds kTuned(1300);
constexpr std::chrono::milliseconds kSoon(100);

// The loop that tunes one dataset, and the manager of its iterator.
class Loop {
 public:
  Loop() {
    std::shared_ptr<data::model::Node> node;
    model_.AddNode(data::model::MakeSourceNode, "dataset", nullptr, &node);
    AddSlowCallback();
    thread_ = std::thread([this] {
      EXPECT_TRUE(model_
                      .OptimizeLoop(data::model::AutotuneAlgorithm::HILL_CLIMB,
                                    /*cpu_budget=*/1,
                                    std::numeric_limits<int64_t>::max(),
                                    &manager_)
                      .ok());
    });
  }

  // Callbacks run one after the other, in an order that is not known.
  void AddSlowCallback() {
    manager_.RegisterCallback(manager_.get_cancellation_token(),
                              [] { std::this_thread::sleep_for(kSlow); });
  }

  void Cancel() { manager_.StartCancel(); }
  void Join() { thread_.join(); }

 private:
  data::model::Model model_;
  CancellationManager manager_;
  std::thread thread_;
};

// Cancels several loops, and returns how long it takes until all have ended.
std::chrono::steady_clock::duration EndLoops() {
  std::vector<std::unique_ptr<Loop>> loops;
  for (int i = 0; i < 6; ++i) {
    loops.push_back(std::make_unique<Loop>());
    // The loops wake at different times.
    std::this_thread::sleep_for(std::chrono::milliseconds(37));
  }
  std::this_thread::sleep_for(kTuned);
  for (auto& loop : loops) {
    for (int i = 0; i < 3; ++i) loop->AddSlowCallback();
  }
  for (auto& loop : loops) loop->Cancel();
  const auto cancelled = std::chrono::steady_clock::now();
  for (auto& loop : loops) loop->Join();
  return std::chrono::steady_clock::now() - cancelled;
}

// Without the hook, a loop that a callback wakes sleeps for its next period,
// unless no other callback follows. A busy machine may be late, too, but not again
// and again.
TEST(DatasetCancellationTest, EndsTheLoopThatTunesADataset) {
  auto shortest = EndLoops();
  for (int i = 0; i < 3 && shortest >= kSoon; ++i) {
    shortest = std::min(shortest, EndLoops());
  }
  EXPECT_LT(shortest, kSoon);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
