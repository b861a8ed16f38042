// SPDX-License-Identifier: Apache-2.0
//
// Included before each file of the engine and of its histories: in place of the
// class that runs a region in a session.

#ifndef TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_PREPARED_RUNS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_PREPARED_RUNS_H_

#define TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/run_outcomes.h"

namespace tensorflow {
namespace staging {

class StagedRun;
class TensorBuffer;

class PreparedRuns {
 public:
  using RunRegion = std::function<Status(const std::shared_ptr<StagedRun>& run,
                                         bool* has_put)>;

  PreparedRuns(const PrefetchRunnerOptions& options, TensorBuffer* buffer,
               RunRegion run_region)
      : options_(options),
        buffer_(buffer),
        run_region_(std::move(run_region)) {}

  Status PrepareProducer(int source) { return OkStatus(); }
  RunOutcome ProduceRecord(int source, uint64_t producer, Status* status,
                           int64_t* micros);
  Status Close(int source, uint64_t producer, const Status& cause);
  bool AwaitsStage() const { return true; }

 private:
  const PrefetchRunnerOptions& options_;
  TensorBuffer* const buffer_;
  const RunRegion run_region_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_PREPARED_RUNS_H_
