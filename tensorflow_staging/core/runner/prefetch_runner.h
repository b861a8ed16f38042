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

// Runs the staged part of a graph ahead of the training step: one thread for
// each entry of fetch_ops, each of which runs its op over and over in the
// session, until the data ends, an error occurs, the runner is stopped or the
// session closes.
//
//   outcome of a run          what its thread does
//   OK                        counts a record, goes on
//   one of closed_exceptions  leaves
//   one of ignored_exceptions counts and logs it, goes on
//   any other error           leaves, and has the other threads leave after the
//                             run that they are in; the first one is the cause
//
// The last thread to leave closes the buffer: with OK, or with the cause, which
// the training step then reports once it has taken the records before it. After
// Stop the buffer is cancelled and not closed.
//
// The threads of a restartable stage stay: where the table says that they leave
// they close the buffer, at the end of the data once all fetch_ops have reached
// it, and go on. Their next run then waits in its TensorBufferBegin until the
// stage is restarted.
//
// UNAVAILABLE of an op in the staged part counts as such in closed_exceptions
// and ignored_exceptions. As a cause it is INTERNAL, as it would be in a step.
//
// Safe in any order of Start, Stop, destruction, and the session's closing and
// deletion: a session that calls NotifySessionClosing when it closes waits
// there until no thread of the runner is inside it. If the runner has a share
// in the session it waits for a moment only, and a run that cannot be cancelled
// keeps the session alive until it ends. For any other kind of session, stop
// the runner before.
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
  // Shares `session` until it closes, or the runner has stopped. It has to be
  // the session that does the work: a wrapper that holds a lock while it closes
  // that session, and needs the lock to end a step, as the one of Python's
  // sessions does, would wait for ever.
  static Status Create(std::shared_ptr<Session> session,
                       const PrefetchRunnerOptions& options,
                       std::unique_ptr<PrefetchRunner>* runner);

  // Stops.
  ~PrefetchRunner();

  // Prepares all runs, opens the buffer and starts the threads. Once only;
  // FAILED_PRECONDITION at the second call, CANCELLED if the runner is stopped
  // or the session is closed, or the error of the session: NOT_FOUND or
  // INVALID_ARGUMENT if its graph lacks what the options name.
  Status Start();

  // Has the threads leave: cancels the buffer, which wakes those that wait for
  // room, and joins them. A thread that waits for something else, such as slow
  // input, is waited for during some seconds only, and then left to the closing
  // of the session, which cancels it. It runs no further step in any case.
  void Stop();

  Stats GetStats() const;

 private:
  class Crew;

  explicit PrefetchRunner(std::shared_ptr<Crew> crew,
                          SessionObserverId observer_id);

  // Shared with its threads and with the session's observers, so that a thread
  // left behind by Stop has it until it is joined.
  const std::shared_ptr<Crew> crew_;
  const SessionObserverId observer_id_;

  TF_DISALLOW_COPY_AND_ASSIGN(PrefetchRunner);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
