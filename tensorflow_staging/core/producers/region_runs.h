// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_REGION_RUNS_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_REGION_RUNS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/buffer/room.h"
#include "tensorflow_staging/core/producers/run_outcome.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

// How producers run the region of a stage: in a session, or as a function.
// A source is an entry of ProducersOptions::sources, by its index. Thread-safe.
class RegionRuns {
 public:
  virtual ~RegionRuns() = default;

  // Prepares the runs of a producer of `source`, in its thread.
  virtual Status PrepareProducer(int source) { return OkStatus(); }

  // The stage; null if it is on a server, which then knows its runs
  // (runtime/worker_runs.h).
  virtual core::RefCountPtr<Stage> FindStage() const = 0;
  // Tells the producer `number` of `source` apart from the others.
  virtual ProducerId IdOf(int source, uint64_t number) const = 0;

  // Whether there is a bound on how many runs may begin; and whether another may
  // while `running` have begun and not ended.
  virtual bool is_bounded() const { return false; }
  virtual bool MayBegin(int running) const { return true; }

  // Runs the region once, as `run`, which the stage has admitted; null if FindStage
  // is. Sets `*has_put` unless it returns an error.
  virtual Status Run(int source, const std::shared_ptr<StagedRun>& run,
                     bool* has_put) = 0;
  // What it means if that fails with `error`.
  virtual RunOutcome OutcomeOf(const Status& error) const = 0;

  // Closes the buffer with the cause with which a run of `source` has ended the
  // stage; OK at the end of the data.
  virtual Status Close(int source, uint64_t number, const Status& cause) = 0;

  // Reads the statistics of the buffer.
  virtual Status ReadStats(BufferStats* stats) = 0;
  // The capacity that a buffer has found which other stages of the region can go on
  // with; nothing if there are no others.
  virtual std::optional<Room> FoundCapacity() const { return std::nullopt; }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_REGION_RUNS_H_
