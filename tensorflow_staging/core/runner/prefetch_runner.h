// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_

#include <chrono>  // NOLINT
#include <memory>
#include <string>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/producers/producers.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prepared_runs.h"
#include "tensorflow_staging/core/runtime/session_observers.h"

namespace tensorflow {
namespace staging {

// Runs a region ahead of the training step: one producer (producers/producer.h) for
// each entry of fetch_ops runs its op in the session again and again, until the data
// ends, an error occurs, the runner is stopped or the session closes. An entry may
// also be the name of a bool tensor behind an op: the producer fetches it, which runs
// the op, and a run that succeeds without yielding it has put no record.
//
// The step reports the cause that ended the stage after the records that have
// been put, whatever the other producers are waiting for. The producers of a
// stage that has ended wait until an iterator that it has read changes, which
// opens the buffer. If nothing that it has read can change, they leave. After
// Stop the buffer is cancelled and not closed.
//
// Start, Stop and the end of the last reference are safe in any order with the
// session's closing and deletion: a session that calls NotifySessionClosing when
// it closes waits there until no thread of the runner is inside it. If the
// runner shares ownership of the session, the session waits only briefly, and a
// run that cannot be cancelled keeps it alive until that run ends. For any other
// kind of session, stop the runner before the session is closed.
//
// Each function holds an inside_ count while it uses the session; the producers
// hold one until the last of them has left. Once session_gone_ is set, nothing
// acquires a count, and the closing session waits until inside_ is 0.
//
// Thread-safe. Holds no lock during calls to the session.
class PrefetchRunner : public std::enable_shared_from_this<PrefetchRunner> {
 public:
  struct Stats : ProducerTeam::Counts {
    std::string name;
    // Whether the runner chooses how many producers work, and has settled on it.
    bool tunes_threads = false;
    bool threads_settled = false;
    // Whether several producers keep the order of one.
    bool orders_threads = false;
  };

  // Creates a runner. Returns INVALID_ARGUMENT, with the name of the option, if
  // a required option is empty.
  //
  // The end of the last reference that comes from `*runner` stops the runner. The
  // session's observer shares ownership, and so keeps it alive until a thread that
  // Stop left behind is joined.
  //
  // Shares ownership of `session` until it closes or the runner has stopped.
  // `session` must be the session that does the work. A wrapper that holds a
  // lock while it closes the session, and needs the same lock to end a step,
  // would deadlock; the wrapper of Python's sessions does so.
  static Status Create(std::shared_ptr<Session> session,
                       const PrefetchRunnerOptions& options,
                       std::shared_ptr<PrefetchRunner>* runner);

  // Prepares all runs, opens the buffer and starts the producers. Returns
  // FAILED_PRECONDITION at the second call, CANCELLED if the runner is stopped
  // or the session is closed, or the error of the session: NOT_FOUND or
  // INVALID_ARGUMENT if its graph lacks a node that the options name.
  Status Start() TF_LOCKS_EXCLUDED(mu_);

  // Cancels the buffer, which wakes the producers that wait for room, and joins
  // the threads. Waits up to 1.5 seconds for a thread that waits for something
  // else, such as slow input; after that the closing session cancels the run of
  // such a thread. In any case, the thread begins no further run. Returns
  // whether no thread is left.
  bool Stop() TF_LOCKS_EXCLUDED(mu_);

  Stats GetStats() const;

  // Reads the statistics of the stage's buffer, which may be on a server.
  // Returns FAILED_PRECONDITION unless the runner has started and not stopped,
  // UNIMPLEMENTED if the stage has no op for that, or the error of the session.
  Status ReadBuffer(BufferStats* stats) TF_LOCKS_EXCLUDED(mu_);

 private:
  PrefetchRunner(std::shared_ptr<Session> session,
                 const PrefetchRunnerOptions& options);

  // Starts the threads, and lets the producers work once the buffer is open. The
  // caller holds an inside_ count.
  Status Open() TF_LOCKS_EXCLUDED(mu_);
  // Ends the threads because the session is closing, and releases the session.
  void OnSessionClosing() TF_LOCKS_EXCLUDED(mu_);
  // Ends OnSessionClosing: waits until inside_ is 0, joins the threads, and
  // releases the session.
  void JoinAndReleaseSession() TF_LOCKS_EXCLUDED(mu_);

  // Wakes the puts that wait for room, unless the runs are not prepared or the
  // session is gone.
  void CancelBuffer() TF_LOCKS_EXCLUDED(mu_);
  // Releases an inside_ count.
  void Leave() TF_LOCKS_EXCLUDED(mu_);
  // Waits until inside_ is 0. Returns false if that takes longer than
  // `patience`.
  bool AwaitNobodyInside(std::chrono::milliseconds patience)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status StoppedStatus() const;

  // Used only while an inside_ count is held. Null once none can be acquired
  // any more.
  std::shared_ptr<Session> session_;
  const PrefetchRunnerOptions options_;
  // Start describes them before it starts the threads; others check prepared_.
  PreparedRuns runs_;
  const std::shared_ptr<Producers> producers_;

  mutable mutex mu_;
  // inside_ is 0.
  SteadyCondition nobody_inside_;
  bool started_ TF_GUARDED_BY(mu_) = false;
  // Whether Stop, or the session's closing, has given up waiting. If so, the
  // next Stop does not wait.
  bool stop_gave_up_ TF_GUARDED_BY(mu_) = false;
  bool session_gone_ TF_GUARDED_BY(mu_) = false;
  // Whether the control ops of runs_ are prepared and not yet released.
  bool prepared_ TF_GUARDED_BY(mu_) = false;
  int inside_ TF_GUARDED_BY(mu_) = 0;

  TF_DISALLOW_COPY_AND_ASSIGN(PrefetchRunner);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PREFETCH_RUNNER_H_
