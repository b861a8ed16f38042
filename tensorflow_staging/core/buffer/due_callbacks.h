// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_DUE_CALLBACKS_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_DUE_CALLBACKS_H_

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/sources/stage.h"

namespace tensorflow {
namespace staging {

// What a take receives.
struct TakenRecord {
  std::vector<Tensor> record;
  // What the record was made from, or what the run had read that found the error
  // or the end. Null if no staged run has made it.
  std::shared_ptr<ReadSet> reads;
};

// What a buffer collects under its lock and does without it: callbacks, what goes
// back to the iterators, and what is to be destroyed.
//
// Run calls the callbacks of puts and runs before those of takes: the former only
// let a producer continue, while the callback of a take may run the whole
// training step in this thread, if the session runs its kernels on the caller's
// thread.
//
// Run does not touch the buffer, because any callback may release the last
// reference to it.
//
// What goes back to the iterators does so at once, with the lock: as soon as that is
// free, another run may read on. Only the stages hear of it later.
//
// The runtime of a server ends a staged run with the lock of its devices. So what
// was waiting for that end goes on in another thread.
class DueCallbacks {
 public:
  using Done = Stage::Done;
  using TakeDone = absl::AnyInvocable<void(const Status&, TakenRecord)>;

  void Add(Done done, Status status) {
    calls_.emplace_back(std::move(done), std::move(status));
  }

  void AddTake(TakeDone done, Status status, TakenRecord taken = {}) {
    takes_.emplace_back(std::move(done), std::move(status), std::move(taken));
  }

  // What was read goes back to its iterators.
  void GiveBack(std::shared_ptr<ReadSet> reads) {
    if (reads == nullptr) return;
    roll_back()->GiveBack(reads);
    Destroy({{}, std::move(reads)});
  }

  // The same without the errors (RollBack::GiveBackElements).
  void GiveBackElements(std::shared_ptr<ReadSet> reads) {
    if (reads == nullptr) return;
    roll_back()->GiveBackElements(reads);
    Destroy({{}, std::move(reads)});
  }

  // Who uses `to` uses what `from` holds, too.
  void HandOver(const std::shared_ptr<ReadSet>& from,
                const std::shared_ptr<ReadSet>& to) {
    roll_back()->Absorb(from, to);
  }

  void Destroy(TakenRecord record) {
    if (record.record.empty() && record.reads == nullptr) return;
    destroyed_.push_back(std::move(record));
  }

  void RunInAnotherThread() {
    if (calls_.empty() && takes_.empty() && roll_back_ == nullptr) return;
    Env::Default()->SchedClosure(
        [due = std::move(*this)]() mutable { due.Run(); });
  }

  void Run() {
    roll_back_.reset();
    for (auto& [done, status] : calls_) {
      done(status);
    }
    for (auto& [done, status, taken] : takes_) {
      const std::shared_ptr<ReadSet> reads = taken.reads;
      done(status, std::move(taken));
      if (reads != nullptr) reads->ForgetUsed();
    }
  }

 private:
  RollBack* roll_back() {
    if (roll_back_ == nullptr) roll_back_ = std::make_unique<RollBack>();
    return roll_back_.get();
  }

  // A put or a take that succeeds adds at most one of each.
  absl::InlinedVector<std::pair<Done, Status>, 1> calls_;
  absl::InlinedVector<std::tuple<TakeDone, Status, TakenRecord>, 1> takes_;
  // Null if nothing went back or was handed over.
  std::unique_ptr<RollBack> roll_back_;
  std::vector<TakenRecord> destroyed_;
};

// Runs them at its own end. Declared before the lock, it ends after the lock's
// release.
class ScopedDueCallbacks : public DueCallbacks {
 public:
  ScopedDueCallbacks() = default;
  ~ScopedDueCallbacks() { Run(); }
  ScopedDueCallbacks(const ScopedDueCallbacks&) = delete;
  ScopedDueCallbacks& operator=(const ScopedDueCallbacks&) = delete;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_DUE_CALLBACKS_H_
