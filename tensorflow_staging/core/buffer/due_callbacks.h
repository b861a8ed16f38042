// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_DUE_CALLBACKS_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_DUE_CALLBACKS_H_

#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

// What a take receives.
struct TakenRecord {
  SourceReader::Record record;
  // What the record was made from. Without a record, what the run had read
  // that found the end.
  ReadSet reads;
  // Whether the record comes from a checkpoint, in host memory.
  bool is_restored = false;
  // What it may give or put back: if the buffer keeps elements, or `reads` has
  // several sources. Not to be destroyed under the buffer's lock.
  std::vector<ReadElement> elements;
  PutBacks taken;
  // The session's run that restored it.
  int64_t step = 0;
  // Older records of a buffer have lower numbers; 0 if it has not been among them.
  int64_t order = 0;
};

// Callbacks that a buffer collects under its lock and runs without it.
//
// Run calls the callbacks of puts, runs and pauses before those of takes: the
// former only let a producer or a saver continue, while the callback of
// a take may run the whole training step in this thread, if the session runs
// its kernels on the caller's thread.
//
// Run does not touch the buffer, because any callback may release the last
// reference to it.
//
// What ends with a session's run ends while that run's step container is
// emptied, which the runtime of a server does with the lock of its devices. So
// what was waiting for it goes on in another thread.
class DueCallbacks {
 public:
  using Done = SourceReader::Done;
  using TakeDone = absl::AnyInvocable<void(const Status&, TakenRecord)>;

  void Add(Done done, Status status) {
    calls_.emplace_back(std::move(done), std::move(status));
  }

  void AddTake(TakeDone done, Status status, TakenRecord taken = {}) {
    takes_.emplace_back(std::move(done), std::move(status), std::move(taken));
  }

  void PutBack(PutBacks taken) {
    if (taken == nullptr) return;
    Add([taken = std::move(taken)](const Status&) { PutBackAll(taken); },
        OkStatus());
  }

  void RunInAnotherThread() {
    if (calls_.empty() && takes_.empty()) return;
    Env::Default()->SchedClosure(
        [due = std::move(*this)]() mutable { due.Run(); });
  }

  void Run() {
    for (auto& [done, status] : calls_) {
      done(status);
    }
    for (auto& [done, status, taken] : takes_) {
      done(status, std::move(taken));
    }
  }

 private:
  // A put or a take that succeeds adds at most one of each.
  absl::InlinedVector<std::pair<Done, Status>, 1> calls_;
  absl::InlinedVector<std::tuple<TakeDone, Status, TakenRecord>, 1> takes_;
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
