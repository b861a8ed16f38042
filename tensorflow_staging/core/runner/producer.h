// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_H_

#include <chrono>  // NOLINT
#include <cstdint>
#include <functional>

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prepared_runs.h"
#include "tensorflow_staging/core/runner/producer_team.h"

namespace tensorflow {
namespace staging {

// Runs the region of a stage again and again, in one thread: what each outcome
// of a run (run_outcomes.h) leads to. All that it is given outlives it.
class Producer {
 public:
  // Producer `index` of the stage with `options`, of which it runs one of the
  // fetch_ops. Calls `on_record` after each record, unless that is null.
  Producer(int index, const PrefetchRunnerOptions& options, PreparedRuns* runs,
           ProducerTeam* team, std::function<void()> on_record);

  // Prepares its run, and produces records while it is its turn, until it must
  // leave.
  void Work();

 private:
  // Runs the region once. Like the next three methods, returns whether the
  // producer continues.
  bool Produce();
  bool CountIgnored(const Status& error);
  // A stage ends once all of its sources have.
  bool EndSource(ProducerTeam::Run* run);
  // `cause` is OK at the end of the data.
  bool EndStage(const Status& cause);
  // Closes the buffer, and logs an error that ended the stage, unless this
  // producer has closed the buffer since its last record. Returns whether the
  // buffer is closed.
  bool CloseBuffer(const Status& cause);
  // Pauses for longer than after its last failed run.
  bool PauseLonger(std::chrono::milliseconds longest);

  const int index_;
  // Tells it apart from all producers of the process.
  const uint64_t number_;
  // Of its op in fetch_ops.
  const int source_;
  const PrefetchRunnerOptions& options_;
  PreparedRuns* const runs_;
  ProducerTeam* const team_;
  const std::function<void()> on_record_;

  // Whether it has ever put a record.
  bool has_produced_ = false;
  // Since its last record: the next pause, how many runs have been ignored, and
  // whether it has closed the buffer. Pauses that grow from one failed run to
  // the next keep the thread from spinning
  //   * after it has closed the buffer: its next run waits until a source
  //     changes, but not on a server before it reads one;
  //   * after many ignored errors in a row: its source may do nothing but fail.
  std::chrono::milliseconds pause_{0};
  int64_t ignored_in_a_row_ = 0;
  bool has_closed_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_H_
