// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PRODUCERS_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PRODUCERS_H_

#include <atomic>
#include <chrono>  // NOLINT
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/runner/prepared_runs.h"
#include "tensorflow_staging/core/runner/run_outcomes.h"

namespace tensorflow {
namespace staging {

// The producers of one stage: what their threads do, and how the threads begin
// and end. PrefetchRunner owns it together with the threads and the session's
// observer, so that a thread which Stop left behind keeps it until the thread
// is joined.
//
// Whoever uses the session holds an inside_ count meanwhile: a thread during
// its whole life, Start and Stop during theirs. Nobody enters once
// session_gone_ is set, and the closing session waits until inside_ is 0, or
// leaves those inside a share in the session.
//
// Thread-safe. No lock is held during calls of the session.
class Producers : public std::enable_shared_from_this<Producers> {
 public:
  Producers(std::shared_ptr<Session> session,
            const PrefetchRunnerOptions& options);

  Producers(const Producers&) = delete;
  Producers& operator=(const Producers&) = delete;

  // As PrefetchRunner's methods of these names.
  Status Start() TF_LOCKS_EXCLUDED(mu_);
  void Stop() TF_LOCKS_EXCLUDED(mu_);
  PrefetchRunner::Stats GetStats() const TF_LOCKS_EXCLUDED(mu_);

  // Ends the threads for a session that is closing, and gives the session up.
  void OnSessionClosing() TF_LOCKS_EXCLUDED(mu_);

  // Whether no thread is left: every one has been joined, or none ever started.
  bool AllJoined() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return threads_.empty();
  }

 private:
  // What thread `index` does.
  void Work(int index) TF_LOCKS_EXCLUDED(mu_);
  // Acts on the outcome of a run of thread `index`. Like the next three,
  // returns whether the thread goes on.
  bool Handle(int index, const Status& status) TF_LOCKS_EXCLUDED(mu_);
  bool CountRecord(int index) TF_LOCKS_EXCLUDED(mu_);
  bool CountIgnored(const Status& status);
  // `cause` is OK at the end of the data.
  bool EndStage(int index, const Status& cause) TF_LOCKS_EXCLUDED(mu_);
  // For a restartable stage: notes that the source of thread `index` has ended.
  // Returns whether all sources have.
  bool AllSourcesEnded(int index) TF_LOCKS_EXCLUDED(mu_);

  // Waits until the time has passed, a source has ended, or the runner is being
  // stopped. Returns whether to go on.
  bool Pause(std::chrono::milliseconds time) TF_LOCKS_EXCLUDED(mu_);
  // Returns whether the buffer could be reached.
  bool CloseBuffer(const Status& cause);
  // Wakes the puts that wait for room, if the buffer can be reached.
  void CancelBuffer() TF_LOCKS_EXCLUDED(mu_);

  // Asks the threads to leave after the run that they are in.
  void AskThreadsToLeave() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Releases an inside_ count.
  void Leave() TF_LOCKS_EXCLUDED(mu_);
  // Waits until nobody is inside. Returns false if that takes too long.
  bool AwaitNobodyInside(mutex_lock* l, std::chrono::milliseconds patience)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After OnSessionClosing: waits for those inside, joins the threads, and
  // gives up the share in the session.
  void JoinAndReleaseSession() TF_LOCKS_EXCLUDED(mu_);

  Status StoppedStatus() const;

  // Used only by those who hold an inside_ count; null once nobody can enter
  // any more.
  std::shared_ptr<Session> session_;
  const PrefetchRunnerOptions options_;
  const RunOutcomes outcomes_;
  // How many different fetch_ops there are.
  const size_t num_sources_;

  // By thread, each used by it alone. After it has closed the buffer, a
  // restartable stage waits in TensorBufferBegin. If the graph lacks that op,
  // pauses that grow from one failed run to the next keep it from spinning.
  std::vector<std::chrono::milliseconds> pauses_;

  // Start prepares the runs before there is another reader: the threads start
  // later, and the others look at prepared_ first.
  PreparedRuns runs_;

  // Whether the threads are to leave after the run that they are in. Read in
  // each round, therefore without the lock.
  std::atomic<bool> enough_{false};
  std::atomic<int64_t> records_{0};
  std::atomic<int64_t> ignored_{0};

  mutable mutex mu_;
  condition_variable changed_;
  bool started_ TF_GUARDED_BY(mu_) = false;
  bool stopping_ TF_GUARDED_BY(mu_) = false;
  // Whether Stop, or the session's closing, has given up waiting; the next Stop
  // does not wait again.
  bool stop_gave_up_ TF_GUARDED_BY(mu_) = false;
  bool session_gone_ TF_GUARDED_BY(mu_) = false;
  // Whether runs_ is complete and not yet released.
  bool prepared_ TF_GUARDED_BY(mu_) = false;
  int inside_ TF_GUARDED_BY(mu_) = 0;
  // Threads that may still produce records.
  int working_ TF_GUARDED_BY(mu_) = 0;
  // The first error that was neither closed nor ignored.
  Status cause_ TF_GUARDED_BY(mu_);
  // Of a restartable stage: the fetch_ops that have reached the end of their
  // data since the last record.
  std::set<std::string> ended_ops_ TF_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Thread>> threads_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PRODUCERS_H_
