// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runtime/session_observers.h"

namespace tensorflow {
namespace staging {

class Producers;

// Runs a region ahead of the training step: one producer thread for each entry
// of fetch_ops runs its op in the session again and again, until the data ends,
// an error occurs, the runner is stopped or the session closes. An entry may
// also be the name of a bool tensor behind an op: the thread fetches it, which
// runs the op, and a run that succeeds without yielding it has put no record.
//
//   result of a run           what its thread does
//   OK                        counts a record, continues
//   OK, but no record         as for any other error, with INVALID_ARGUMENT
//   one of closed_exceptions  closes the buffer, once all fetch_ops have
//                             reached the end of their data
//   one of ignored_exceptions counts and logs it, continues
//   any other error           closes the buffer with the error. The first such
//                             error is the cause that ends the stage
//
// A run that failed only because an iterator that it reads has changed is
// repeated, whatever its error.
//
// The step reports the cause after the records that have been put, whatever the
// other threads are waiting for. The threads of a stage that has ended wait
// until an iterator that it has read changes, which opens the buffer. If nothing
// that it has read can change, they leave. After Stop the buffer is cancelled
// and not closed.
//
// If an op of the region fails with UNAVAILABLE, closed_exceptions and
// ignored_exceptions treat the error as UNAVAILABLE. As the cause it is
// INTERNAL, as it would be in a step.
//
// Start, Stop and destruction are safe in any order with the session's closing
// and deletion: a session that calls NotifySessionClosing when it closes waits
// there until no thread of the runner is inside it. If the runner shares
// ownership of the session, the session waits only briefly, and a run that
// cannot be cancelled keeps it alive until that run ends. For any other kind of
// session, stop the runner before the session is closed.
//
// Thread-safe. Holds no lock during calls to the session.
class PrefetchRunner {
 public:
  struct Stats {
    std::string name;
    // Runs that succeeded.
    int64_t records = 0;
    // Runs that failed with one of ignored_exceptions.
    int64_t ignored = 0;
    // Whether a thread produces records: false after the end of the data, until
    // the first record of other data.
    bool running = false;
    // How many threads do, or wait for other data.
    int threads = 0;
    // How many runs have been timed, and how long they took, with their waits
    // for room: those that put a record, but for the first of each thread.
    int64_t timed_records = 0;
    int64_t record_micros = 0;
    // Whether the runner chooses how many threads work, and has settled on it.
    bool tunes_threads = false;
    bool threads_settled = false;
  };

  // Creates a runner. Returns INVALID_ARGUMENT, with the name of the option, if
  // a required option is empty.
  //
  // Shares ownership of `session` until it closes or the runner has stopped.
  // `session` must be the session that does the work. A wrapper that holds a
  // lock while it closes the session, and needs the same lock to end a step,
  // would deadlock; the wrapper of Python's sessions does so.
  static Status Create(std::shared_ptr<Session> session,
                       const PrefetchRunnerOptions& options,
                       std::unique_ptr<PrefetchRunner>* runner);

  // Stops the runner.
  ~PrefetchRunner();

  // Prepares all runs, opens the buffer and starts the threads. Returns
  // FAILED_PRECONDITION at the second call, CANCELLED if the runner is stopped
  // or the session is closed, or the error of the session: NOT_FOUND or
  // INVALID_ARGUMENT if its graph lacks a node that the options name.
  Status Start();

  // Cancels the buffer, which wakes the threads that wait for room, and joins
  // the threads. Waits up to 1.5 seconds for a thread that waits for something
  // else, such as slow input; after that the closing session cancels the run of
  // such a thread. In any case, the thread begins no further run.
  void Stop();

  Stats GetStats() const;

  // Reads the statistics of the stage's buffer, which may be on a server.
  // Returns FAILED_PRECONDITION unless the runner has started and not stopped,
  // UNIMPLEMENTED if the stage has no op for that, or the error of the session.
  Status ReadBuffer(BufferStats* stats);

 private:
  PrefetchRunner(std::shared_ptr<Producers> producers,
                 SessionObserverId observer_id);

  // The threads and the session's observer share ownership, so that a thread
  // that Stop left behind keeps this object alive until the thread is joined.
  const std::shared_ptr<Producers> producers_;
  const SessionObserverId observer_id_;

  TF_DISALLOW_COPY_AND_ASSIGN(PrefetchRunner);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
