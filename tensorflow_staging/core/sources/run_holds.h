// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_RUN_HOLDS_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_RUN_HOLDS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

// The stages that one session's run holds because it changes or saves their
// sources. The run's step container owns this object, and the holds end with
// it: whatever the run does to several iterators, no staged run sees half of
// it.
//
// Thread-safe.
class RunHolds : public ResourceBase {
 public:
  // Returns those of the run of `ctx`. If the run has no step container, they
  // end with the returned reference.
  static core::RefCountPtr<RunHolds> Of(OpKernelContext* ctx);
  // Ends those of the run of `ctx` now. For eager ops, which share a step
  // container that lives as long as their context.
  static void EndNow(OpKernelContext* ctx);

  explicit RunHolds(const void* step_container);
  ~RunHolds() override;

  // Tells the runs of a process apart; not 0.
  int64_t id() const { return id_; }

  const void* step_container() const { return step_container_; }

  // When the run ended, by Source::Now(); later than any Now() until then.
  std::shared_ptr<const std::atomic<int64_t>> ended_at() const {
    return ended_at_;
  }

  // Begins the hold of a stage that reads what the run changes or saves; once for
  // each run.
  SourceReader::Due Hold(SourceReader* reader) TF_LOCKS_EXCLUDED(mu_);
  // Keeps a hold that has begun.
  void Keep(core::RefCountPtr<SourceReader> reader) TF_LOCKS_EXCLUDED(mu_);

  // Claims the records of a stage for one of the iterators that the run saves.
  // Returns false if another one has them.
  bool ClaimRecords(const std::string& stage, const Source* source)
      TF_LOCKS_EXCLUDED(mu_);

  // A stage has begun to read an iterator after its position was saved: a
  // record of the stage would come again if the run saved it.
  void NoteLateRead(const std::string& stage) TF_LOCKS_EXCLUDED(mu_);
  // Returns ABORTED if the stage has.
  Status CheckNoLateRead(const std::string& stage) TF_LOCKS_EXCLUDED(mu_);

  std::string DebugString() const override { return "RunHolds"; }

 private:
  const int64_t id_;
  const void* const step_container_;
  const std::shared_ptr<std::atomic<int64_t>> ended_at_;
  mutex mu_;
  std::vector<core::RefCountPtr<SourceReader>> held_ TF_GUARDED_BY(mu_);
  std::set<const SourceReader*> begun_ TF_GUARDED_BY(mu_);
  std::map<std::string, const Source*> claimed_ TF_GUARDED_BY(mu_);
  std::set<std::string> late_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_RUN_HOLDS_H_
