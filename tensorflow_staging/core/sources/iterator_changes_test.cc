// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/iterator_changes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {
namespace {

// An iterator whose state is replaced as IteratorResource does it.
class IteratorChangesTest : public ::testing::Test {
 protected:
  using State = std::shared_ptr<int>;

  IteratorChangesTest()
      : device_(
            DeviceFactory::NewDevice("CPU", {}, "/job:a/replica:0/task:0")) {
    params_.device = device_.get();
    params_.cancellation_manager = &cancellation_;
    context_ = std::make_unique<OpKernelContext>(&params_, /*num_outputs=*/0);
  }
  ~IteratorChangesTest() override { Source::Forget(&state_); }

  // A staged read takes its turn, and the state. Returns both.
  std::pair<int64_t, State> BeginStagedRead() {
    const int64_t turn = *source_->AwaitTurn(&cancellation_);
    source_->NoteStagedRead(turn);
    return {turn, state_};
  }

  // Replaces the state. Returns whether the reads of the old one are cancelled,
  // after `in_the_window`, which runs when they have been counted.
  template <typename Call>
  bool Restore(Call in_the_window) {
    data::VariantTensorDataReader no_ledger({});
    IteratorChange change =
        IteratorChange::Restore(&state_, context_.get(), &no_ledger);
    EXPECT_EQ(change.Prepare(), OkStatus());
    State old = std::make_shared<int>();
    state_.swap(old);
    change.Apply();
    const int64_t reads = old.use_count() - 1;
    in_the_window();
    const bool cancels = change.MayCancelReads(reads);
    change.Finish();
    return cancels;
  }
  bool Restore() {
    return Restore([] {});
  }

  const std::unique_ptr<Device> device_;
  CancellationManager cancellation_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> context_;
  State state_ = std::make_shared<int>();
  const std::shared_ptr<Source> source_ = Source::Of(&state_);
};

TEST_F(IteratorChangesTest, NothingIsCancelledIfNothingReads) {
  EXPECT_FALSE(Restore());
}

TEST_F(IteratorChangesTest, AStagedReadOfTheOldStateIsCancelled) {
  auto [turn, state] = BeginStagedRead();
  EXPECT_TRUE(Restore());
  // A read of the new state does not hold up the next change.
  EXPECT_FALSE(Restore());
  source_->EndTurn(turn);
}

TEST_F(IteratorChangesTest, AReadOfTheProgramIsNotCancelled) {
  const State program = state_;
  EXPECT_FALSE(Restore());
}

TEST_F(IteratorChangesTest, NorIsItBesideAStagedRead) {
  const State program = state_;
  auto [turn, state] = BeginStagedRead();
  EXPECT_FALSE(Restore());
  source_->EndTurn(turn);
}

// The thread of the change is stopped between its two looks.
TEST_F(IteratorChangesTest, NorIsItIfTheStagedReadEndsInTheMiddle) {
  const State program = state_;
  auto read = BeginStagedRead();
  EXPECT_FALSE(Restore([&] {
    source_->EndTurn(read.first);
    read.second.reset();
  }));
}

// The turn of a read ends before it releases the state.
TEST_F(IteratorChangesTest, NorIsItIfTheStagedReadIsAboutToReleaseItsState) {
  auto [turn, state] = BeginStagedRead();
  source_->EndTurn(turn);
  EXPECT_FALSE(Restore());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
