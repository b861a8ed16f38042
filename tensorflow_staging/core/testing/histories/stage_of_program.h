// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_STAGE_OF_PROGRAM_H_
#define TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_STAGE_OF_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/producers/producers.h"
#include "tensorflow_staging/core/producers/region_runs.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/sources/staged_run.h"
#include "tensorflow_staging/core/testing/histories/iterator.h"
#include "tensorflow_staging/core/testing/histories/program.h"

namespace tensorflow {
namespace staging {

using Iterators = std::vector<std::unique_ptr<Iterator>>;

// A stage with its producers: what a runner, the executor and the kernels do with
// the engine.
class StageOfProgram : public RegionRuns {
 public:
  // `before` is the stage whose records it takes; null if there is none. What is
  // not owned outlives it.
  StageOfProgram(const Program& program, int64_t index, StageOfProgram* before,
                 const Iterators* iterators, const std::atomic<int64_t>* mode);

  TensorBuffer* buffer() const { return buffer_.get(); }

  void Start();
  // Asks the producers to leave.
  void Stop();
  void AwaitStop();

  core::RefCountPtr<Stage> FindStage() const override;
  ProducerId IdOf(int source, uint64_t number) const override {
    return {/*source=*/1, number};
  }
  Status Run(int source, const std::shared_ptr<StagedRun>& run,
             bool* has_put) override;
  RunOutcome OutcomeOf(const Status& error) const override;
  Status Close(int source, uint64_t number, const Status& cause) override;
  Status ReadStats(BufferStats* stats) override;

 private:
  Status Take(const std::shared_ptr<StagedRun>& run,
              CancellationManager* cancellation, Values* values);
  Status Put(const std::shared_ptr<StagedRun>& run,
             CancellationManager* cancellation, const Values& values);

  const Program& program_;
  const Region& region_;
  StageOfProgram* const before_;
  const Iterators& iterators_;
  const std::atomic<int64_t>& mode_;
  PrefetchRunnerOptions options_;
  const core::RefCountPtr<TensorBuffer> buffer_;

  // Of one start; null before that.
  std::shared_ptr<Producers> producers_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_STAGE_OF_PROGRAM_H_
