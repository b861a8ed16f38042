// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/session/session_observers.h"

namespace tensorflow {
namespace staging {

class Producers;

// Runs a region ahead of the training step: one producer thread for each entry
// of fetch_ops runs its op in the session again and again, until the data ends,
// an error occurs, the runner is stopped or the session closes.
//
//   outcome of a run          what its thread does
//   OK                        counts a record, continues
//   one of closed_exceptions  leaves
//   one of ignored_exceptions counts and logs it, continues
//   any other error           leaves, and asks the other threads to leave after
//                             the run that they are in; the first such error is
//                             the cause that ends the stage
//
// The last thread to leave closes the buffer: with OK, or with the cause, which
// the step then reports after the last record before it. After Stop the buffer
// is cancelled and not closed.
//
// The threads of a restartable stage stay. Where the table says that they
// leave, they close the buffer, at the end of the data once all fetch_ops have
// reached it, and continue: their next run waits in its TensorBufferBegin until
// the stage restarts.
//
// UNAVAILABLE of an op in the region counts as such in closed_exceptions and
// ignored_exceptions. As a cause it is INTERNAL, as it would be in a step.
//
// Start, Stop and destruction are safe in any order with the session's closing
// and deletion: a session that calls NotifySessionClosing when it closes waits
// there until no thread of the runner is inside it. If the runner has a share
// in the session, the session waits for a moment only, and a run that cannot be
// cancelled keeps it alive until that run ends. Stop the runner before any
// other kind of session is closed.
//
// Thread-safe. No lock is held while calling the session.
class PrefetchRunner {
 public:
  struct Stats {
    std::string name;
    // Runs that succeeded.
    int64_t records = 0;
    // Runs that failed with one of ignored_exceptions.
    int64_t ignored = 0;
    // Whether a thread may still produce records.
    bool running = false;
  };

  // Checks the options; INVALID_ARGUMENT says which one is unusable.
  //
  // Shares `session` until it closes or the runner has stopped. It has to be
  // the session that does the work. A wrapper, such as that of Python's
  // sessions, which holds a lock while it closes the session and needs the same
  // lock to end a step, would deadlock.
  static Status Create(std::shared_ptr<Session> session,
                       const PrefetchRunnerOptions& options,
                       std::unique_ptr<PrefetchRunner>* runner);

  // Stops.
  ~PrefetchRunner();

  // Prepares all runs, opens the buffer and starts the threads. Returns
  // FAILED_PRECONDITION at the second call, CANCELLED if the runner is stopped
  // or the session is closed, or the error of the session: NOT_FOUND or
  // INVALID_ARGUMENT if its graph lacks a node that the options name.
  Status Start();

  // Cancels the buffer, which wakes the threads that wait for room, and joins
  // the threads. Waits up to 1.5 seconds for a thread that waits for something
  // else, such as slow input; after that the closing session cancels the run of
  // such a thread. In any case it begins no further run.
  void Stop();

  Stats GetStats() const;

 private:
  PrefetchRunner(std::shared_ptr<Producers> producers,
                 SessionObserverId observer_id);

  // Shared with its threads and with the session's observer: a thread that Stop
  // left behind keeps it until the thread is joined.
  const std::shared_ptr<Producers> producers_;
  const SessionObserverId observer_id_;

  TF_DISALLOW_COPY_AND_ASSIGN(PrefetchRunner);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
