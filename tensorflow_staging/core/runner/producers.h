// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PRODUCERS_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PRODUCERS_H_

#include <atomic>
#include <chrono>  // NOLINT
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/runner/prepared_runs.h"
#include "tensorflow_staging/core/runner/producer_periods.h"
#include "tensorflow_staging/core/runner/producer_tuner.h"
#include "tensorflow_staging/core/runner/run_outcomes.h"

namespace tensorflow {
namespace staging {

// The producer threads of one stage: what they do, and how they begin and end.
// PrefetchRunner, the threads and the session's observer share ownership of
// this object, so that a thread that Stop left behind keeps it alive until the
// thread is joined.
//
// Each function holds an inside_ count while it uses the session; a thread
// holds one during its whole life. Once session_gone_ is set, nothing acquires
// a count, and the closing session waits until inside_ is 0. If this object
// shares ownership of the session, the session waits only briefly: the threads
// that are still inside then keep it alive.
//
// Thread-safe. Holds no lock during calls to the session.
class Producers : public std::enable_shared_from_this<Producers> {
 public:
  Producers(std::shared_ptr<Session> session,
            const PrefetchRunnerOptions& options);

  Producers(const Producers&) = delete;
  Producers& operator=(const Producers&) = delete;

  // Implement the methods of PrefetchRunner that have the same names.
  Status Start() TF_LOCKS_EXCLUDED(mu_);
  void Stop() TF_LOCKS_EXCLUDED(mu_);
  PrefetchRunner::Stats GetStats() const TF_LOCKS_EXCLUDED(mu_);
  Status ReadBuffer(BufferStats* stats) TF_LOCKS_EXCLUDED(mu_);

  // Ends the threads because the session is closing, and releases the session.
  void OnSessionClosing() TF_LOCKS_EXCLUDED(mu_);

  // Returns whether no thread is left: all have been joined, or none started.
  bool AllJoined() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return threads_.empty();
  }

 private:
  // Starts the threads, and lets them work once the buffer is open. The caller
  // holds an inside_ count.
  Status Open() TF_LOCKS_EXCLUDED(mu_);
  // Starts threads until there are `count`, unless the runner is being stopped.
  void StartThreads(int count) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The body of thread `index`.
  void Work(int index) TF_LOCKS_EXCLUDED(mu_);
  // Waits until the buffer is open, or the runner is being stopped.
  void AwaitOpen() TF_LOCKS_EXCLUDED(mu_);
  // Returns whether thread `index` is to run the region: at once, unless the
  // runner has chosen to work with fewer threads; then once it needs more.
  bool AwaitTurn(int index) TF_LOCKS_EXCLUDED(mu_);
  // Adapts the number of threads that work, in thread 0 after a record.
  void TuneThreads() TF_LOCKS_EXCLUDED(mu_);
  // Runs the region once, in thread `index`, and handles the result. Like the
  // next four methods, returns whether the thread continues.
  bool Produce(int index) TF_LOCKS_EXCLUDED(mu_);
  bool CountRecord(int index, int64_t ends_before, int64_t micros)
      TF_LOCKS_EXCLUDED(mu_);
  bool CountIgnored(int index, const Status& status) TF_LOCKS_EXCLUDED(mu_);
  // Handles the end of thread `index`'s source, found by a run that began when
  // there were `records_before` records. A stage ends once all of its sources
  // have.
  bool EndSource(int index, int64_t records_before) TF_LOCKS_EXCLUDED(mu_);
  // At the end of the data, lets the runs of other threads end, for a moment at
  // most: one of them may have found the error that is the cause. Returns
  // whether one has.
  bool LetErrorsComeFirst(int64_t failures_before) TF_LOCKS_EXCLUDED(mu_);
  // `cause` is OK at the end of the data.
  bool EndStage(int index, const Status& cause) TF_LOCKS_EXCLUDED(mu_);

  // The pause of thread `index`, which grows from one failed run to the next.
  std::chrono::milliseconds NextPause(int index,
                                      std::chrono::milliseconds longest);
  // Waits until the time has passed, a source has ended, or the runner is being
  // stopped. Returns whether the thread continues.
  bool Pause(std::chrono::milliseconds time) TF_LOCKS_EXCLUDED(mu_);
  // Whether `cause` is that of a stage that has started before the program has
  // initialised what it reads: the next step tries again, and a step that is too
  // early gets the error.
  bool AwaitsInitialization(const Status& cause) const;
  // Closes the buffer, and logs an error that ended the stage unless it has
  // been logged. Returns whether the buffer is closed.
  bool CloseBuffer(const Status& cause, bool is_logged = false);
  // Wakes the puts that wait for room, unless the runs are not prepared or the
  // session is gone.
  void CancelBuffer() TF_LOCKS_EXCLUDED(mu_);

  // Asks the threads to leave after their current runs.
  void AskThreadsToLeave() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Releases an inside_ count.
  void Leave() TF_LOCKS_EXCLUDED(mu_);
  // Waits until inside_ is 0. Returns false if that takes longer than
  // `patience`.
  bool AwaitNobodyInside(std::chrono::milliseconds patience)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends OnSessionClosing: waits until inside_ is 0, joins the threads, and
  // releases the session.
  void JoinAndReleaseSession() TF_LOCKS_EXCLUDED(mu_);

  Status StoppedStatus() const;

  // Used only while an inside_ count is held. Null once none can be acquired
  // any more.
  std::shared_ptr<Session> session_;
  const PrefetchRunnerOptions options_;
  const RunOutcomes outcomes_;
  // How many threads there may be.
  const int most_threads_;
  // How many different fetch_ops there are.
  const size_t num_sources_;

  // The next pause of each thread, used only by that thread. Pauses that grow
  // from one failed run to the next keep the thread from spinning
  //   * after it has closed the buffer: its next run waits until a source
  //     changes, but not on a server before it reads one;
  //   * after many ignored errors in a row: its source may do nothing but fail.
  // A record resets the pause.
  std::vector<std::chrono::milliseconds> pauses_;
  // By thread: how many of its runs have been ignored since its last record.
  std::vector<int64_t> ignored_in_a_row_;
  // By thread: whether it has closed the buffer since its last record. Not
  // bool, of which a vector packs several into a byte.
  std::vector<char> has_closed_;
  // By thread: whether it has ever put a record.
  std::vector<char> has_produced_;

  // Needs no lock: Start describes the runs before it starts the threads, which
  // wait for open_ before they run anything. Other readers check prepared_.
  PreparedRuns runs_;

  // Whether the threads must leave after their current runs. Atomic, because
  // each thread reads it before each run and should not lock mu_ for that.
  std::atomic<bool> must_leave_{false};
  // The threads with a lower index work; the others wait for their turn.
  // Changes under mu_.
  std::atomic<int> active_threads_;
  // Used by thread 0 alone. Nothing if the number of threads is fixed.
  std::optional<ProducerTuner> tuner_;
  ProducerPeriods periods_;
  int reported_threads_ = 0;

  std::atomic<int64_t> records_{0};
  std::atomic<int64_t> ignored_{0};
  // How long runs that put a record took, but for the first of each thread.
  std::atomic<int64_t> timed_records_{0};
  std::atomic<int64_t> record_micros_{0};
  // What the tuner said last.
  std::atomic<bool> settled_{false};
  // How many threads are in a run or handle its result.
  std::atomic<int> producing_{0};
  // How often an error has closed the buffer.
  std::atomic<int64_t> failures_{0};
  // How often a run has ended the stage. A run that had begun before may still
  // put a record afterwards.
  std::atomic<int64_t> ends_{0};
  // How many ends came before the latest run that has put a record began.
  std::atomic<int64_t> ends_before_record_{0};

  mutable mutex mu_;
  SteadyCondition changed_;
  bool started_ TF_GUARDED_BY(mu_) = false;
  bool stopping_ TF_GUARDED_BY(mu_) = false;
  // Whether Stop, or the session's closing, has given up waiting. If so, the
  // next Stop does not wait.
  bool stop_gave_up_ TF_GUARDED_BY(mu_) = false;
  bool session_gone_ TF_GUARDED_BY(mu_) = false;
  // Whether the control ops of runs_ are prepared and not yet released.
  bool prepared_ TF_GUARDED_BY(mu_) = false;
  // Whether Start has opened the buffer.
  bool open_ TF_GUARDED_BY(mu_) = false;
  // Whether threads that wait for their turn must leave: the stage has ended.
  bool idle_must_leave_ TF_GUARDED_BY(mu_) = false;
  int inside_ TF_GUARDED_BY(mu_) = 0;
  // Threads that may still produce records.
  int working_ TF_GUARDED_BY(mu_) = 0;
  // The fetch_ops that have reached the end of their data since the last
  // record.
  std::set<std::string> ended_ops_ TF_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Thread>> threads_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PRODUCERS_H_
