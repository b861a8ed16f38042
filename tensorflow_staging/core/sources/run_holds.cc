// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/run_holds.h"

#include <limits>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kName[] = "staging_run_holds";

int64_t NextId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

RunHolds::RunHolds(const void* step_container)
    : id_(NextId()),
      step_container_(step_container),
      ended_at_(std::make_shared<std::atomic<int64_t>>(
          std::numeric_limits<int64_t>::max())) {}

RunHolds::~RunHolds() {
  // Nobody else has a reference any more. A run that is admitted from here on
  // may read what this run has changed.
  *ended_at_ = Source::Tick();
  for (const auto& reader : held_) reader->EndHold(step_container_);
}

core::RefCountPtr<RunHolds> RunHolds::Of(OpKernelContext* ctx) {
  RunHolds* holds = nullptr;
  const auto make = [ctx](RunHolds** made) {
    *made = new RunHolds(ctx->step_container());
    return OkStatus();
  };
  if (ctx->step_container() == nullptr ||
      !ctx->step_container()
           ->LookupOrCreate<RunHolds>(ctx->resource_manager(), kName, &holds,
                                      make)
           .ok()) {
    holds = new RunHolds(/*step_container=*/nullptr);
  }
  return core::RefCountPtr<RunHolds>(holds);
}

void RunHolds::EndNow(OpKernelContext* ctx) {
  if (ctx->step_container() == nullptr) return;
  // There may be none.
  ctx->step_container()
      ->Delete<RunHolds>(ctx->resource_manager(), kName)
      .IgnoreError();
}

SourceReader::Due RunHolds::Hold(SourceReader* reader) {
  // The hold has begun when any call returns: initialisers of a run, and staged
  // runs that read what it changes, call this at the same time.
  mutex_lock l(mu_);
  if (!begun_.insert(reader).second) return [] {};
  held_.push_back(tsl::core::GetNewRef(reader));
  return reader->BeginHold(step_container_);
}

void RunHolds::Keep(core::RefCountPtr<SourceReader> reader) {
  mutex_lock l(mu_);
  held_.push_back(std::move(reader));
}

bool RunHolds::ClaimRecords(const std::string& stage, const Source* source) {
  mutex_lock l(mu_);
  return claimed_.emplace(stage, source).first->second == source;
}

void RunHolds::NoteLateRead(const std::string& stage) {
  mutex_lock l(mu_);
  late_.insert(stage);
}

Status RunHolds::CheckNoLateRead(const std::string& stage) {
  mutex_lock l(mu_);
  if (late_.count(stage) == 0) return OkStatus();
  return errors::Aborted(
      "Stage '", stage,
      "' could not be saved: it began to read another iterator just after the "
      "position of that one had been saved. Save again.");
}

}  // namespace staging
}  // namespace tensorflow
