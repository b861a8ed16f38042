// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_H_

#include <chrono>  // NOLINT
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/producers/producer_team.h"
#include "tensorflow_staging/core/producers/region_runs.h"
#include "tensorflow_staging/core/sources/run_order.h"

namespace tensorflow {
namespace staging {

// Runs the region of a stage again and again, in one thread:
//
//   ProducerTeam::Run ─▶ RunOrder::Begin ─▶ admission ─▶ RegionRuns::Run
//          ▲                                                    │ outcome
//          ├───────────── record, stale or ignored ◀────────────┤
//          └─── Close ◀── end of the data, or another error ◀───┘
//
// A run of a closed stage waits for its admission: until a step has got the end
// or the error, or an iterator changes. All that it is given outlives it.
class Producer {
 public:
  struct Options {
    std::string stage;
    // Among the producers of the stage, and that of its source.
    int index = 0;
    int source = 0;
    // What the source reads: several may read the same.
    std::string source_name;
    // The order in which the producers of this source make their records; null if
    // there is one producer, or they make them in any order, as those of a server's
    // stage always do.
    std::shared_ptr<RunOrder> order;
    // Called after each record, unless it is null.
    std::function<void()> on_record;
  };

  Producer(Options options, RegionRuns* runs, ProducerTeam* team);

  // Prepares its run, and produces records while it is its turn, until it must
  // leave.
  void Work();

 private:
  // Runs the region once, unless its run could not be prepared. Like the next three
  // methods, returns whether the producer continues.
  bool Produce(const Status& prepared);
  bool CountIgnored(const Status& error);
  // A stage ends once all of its sources have.
  bool EndSource(ProducerTeam::Run* run);
  // `cause` is OK at the end of the data.
  bool EndStage(const Status& cause);
  // Sets `*status` to the error of a run that put no record, and `*micros` to how
  // long the region ran, with the put's wait for its turn and for room, but without
  // the wait for the stage.
  RunOutcome RunOnce(Status* status, int64_t* micros);
  // Closes the buffer, and logs an error that ended the stage, unless this
  // producer has closed the buffer since its last record. Returns whether the
  // buffer is closed.
  bool CloseBuffer(const Status& cause);
  // Pauses for longer than after its last failed run.
  bool PauseLonger(std::chrono::milliseconds longest);
  // The outcome of the run has been handled.
  void EndInOrder() {
    if (order_ != nullptr) order_->End(number_);
  }

  const Options options_;
  // Tells it apart from all producers of the process.
  const uint64_t number_;
  RegionRuns* const runs_;
  ProducerTeam* const team_;
  // Set by the first run, which knows where the stage is.
  std::shared_ptr<RunOrder> order_;

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

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_PRODUCER_H_
