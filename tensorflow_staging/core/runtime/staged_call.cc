// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/staged_call.h"

#include <functional>
#include <utility>

namespace tensorflow {
namespace staging {
namespace {

// Null outside of all scopes.
thread_local StagedCall* current = nullptr;

}  // namespace

ScopedStagedCall::ScopedStagedCall(StagedCall call)
    : call_(std::move(call)), current_(&current, &call_) {}

bool SyncOnFinish(const RunOptions& options) {
  return current == nullptr ||
         options.trace_level() >= RunOptions::HARDWARE_TRACE;
}

int64_t CallableTimeout(int64_t operation_timeout_in_ms) {
  return current != nullptr && current->timeout_millis > 0
             ? current->timeout_millis
             : operation_timeout_in_ms;
}

bool RunsInCaller() { return current != nullptr && current->runs_in_caller; }

Executor::Args::Runner RunnerInCaller(thread::ThreadPool* pool) {
  return [pool](std::function<void()> closure) {
    if (RunsInCaller()) {
      closure();
    } else {
      pool->Schedule(std::move(closure));
    }
  };
}

void AllowReadInCaller() {
  if (current != nullptr) current->reads_in_caller = current->runs_in_caller;
}

bool ReadInCaller(OpKernelContext* ctx, absl::FunctionRef<void()> read) {
  // The thread may also compute for a run of another stage, to which it has given a
  // record.
  if (current == nullptr || !current->reads_in_caller ||
      current->taken == nullptr || ctx->deadline().has_value() ||
      StagedRun::Find(ctx->cancellation_manager()).get() != current->taken) {
    return false;
  }
  const ScopedThreadValue<StagedCall*> outside(&current, nullptr);
  read();
  return true;
}

std::shared_ptr<StagedRun> TakeStagedRun() {
  if (current == nullptr || current->run == nullptr) return nullptr;
  current->taken = current->run.get();
  return std::exchange(current->run, nullptr);
}

StagedRunThreads* TakeStagedRunThreads() {
  return current == nullptr ? nullptr
                            : std::exchange(current->threads, nullptr);
}

void BeginStagedRun(const CancellationManager* cancellation) {
  if (std::shared_ptr<StagedRun> run = TakeStagedRun()) {
    current->begun =
        std::make_shared<ScopedStagedRun>(cancellation, std::move(run));
  }
}

}  // namespace staging
}  // namespace tensorflow
