// SPDX-License-Identifier: Apache-2.0
//
// Tests what a runner logs when its runs fail: a warning or an error if
// something is wrong, and nothing if the program has only closed its session.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A session whose runs end as the test says.
class FakeSession : public Session {
 public:
  Status produce, close, cancel;
  // What the first run of the close op returns instead of `close`, unless OK.
  Status first_close;
  // How often the close op runs before `closed`.
  std::atomic<int> closes_left{1};
  Notification closed;

  Status Create(const GraphDef& graph) override { return OkStatus(); }
  Status Extend(const GraphDef& graph) override { return OkStatus(); }
  Status Close() override { return OkStatus(); }
  Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
             const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets,
             std::vector<Tensor>* outputs) override {
    return errors::Unimplemented("Run");
  }
  Status ListDevices(std::vector<DeviceAttributes>* devices) override {
    return errors::Unimplemented("ListDevices");
  }
  Status MakeCallable(const CallableOptions& options,
                      CallableHandle* handle) override {
    mutex_lock l(mu_);
    *handle = targets_.size();
    targets_.push_back(options.target(0));
    return OkStatus();
  }
  Status RunCallable(CallableHandle handle, const std::vector<Tensor>& feeds,
                     std::vector<Tensor>* fetches,
                     RunMetadata* metadata) override {
    const std::string target = Target(handle);
    if (target == "produce") return produce;
    if (target == "cancel") return cancel;
    if (target != "close") return OkStatus();
    if (!first_close.ok()) return std::exchange(first_close, OkStatus());
    if (--closes_left == 0) closed.Notify();
    return close;
  }
  Status ReleaseCallable(CallableHandle handle) override { return OkStatus(); }

 private:
  std::string Target(CallableHandle handle) {
    mutex_lock l(mu_);
    return targets_[handle];
  }

  mutex mu_;
  std::vector<std::string> targets_ TF_GUARDED_BY(mu_);
};

// Collects the warnings and errors of the runner.
class Log : public TFLogSink {
 public:
  Log() { TFAddLogSink(this); }
  ~Log() override { TFRemoveLogSink(this); }

  void Send(const TFLogEntry& entry) override {
    if (entry.log_severity() < absl::LogSeverity::kWarning) return;
    mutex_lock l(mu_);
    lines_.push_back(absl::LogSeverityName(entry.log_severity()) +
                     (": " + entry.ToString()));
  }

  std::vector<std::string> lines() {
    mutex_lock l(mu_);
    return lines_;
  }

 private:
  mutex mu_;
  std::vector<std::string> lines_ TF_GUARDED_BY(mu_);
};

// The error of a session of a server that the program has closed.
Status ClosedByProgram() {
  return errors::InvalidArgument("A session is not created yet....");
}

class RunnerLogTest : public ::testing::Test {
 protected:
  // Runs the stage until it has closed its buffer, and stops it. Returns what
  // it has logged.
  std::vector<std::string> RunAndStop() {
    PrefetchRunnerOptions options;
    options.set_name("prefetch");
    options.set_cancel_op("cancel");
    options.set_resume_op("resume");
    options.set_close_op("close");
    options.set_error_code_tensor("code:0");
    options.set_error_message_tensor("message:0");
    options.add_fetch_ops("produce");
    options.add_closed_exceptions(error::OUT_OF_RANGE);
    Log log;
    std::shared_ptr<PrefetchRunner> runner;
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner));
    TF_CHECK_OK(runner->Start());
    session_->closed.WaitForNotification();
    runner->Stop();
    return log.lines();
  }

  std::shared_ptr<FakeSession> session_ = std::make_shared<FakeSession>();
};

TEST_F(RunnerLogTest, NothingAtTheEndOfTheData) {
  session_->produce = errors::OutOfRange("end");
  EXPECT_THAT(RunAndStop(), IsEmpty());
}

TEST_F(RunnerLogTest, NothingIfTheProgramHasClosedItsSession) {
  session_->produce = session_->close = session_->cancel = ClosedByProgram();
  EXPECT_THAT(RunAndStop(), IsEmpty());
}

TEST_F(RunnerLogTest, NothingIfTheSessionWasClosedDuringARun) {
  session_->produce = errors::Aborted("Session 3f is not found.");
  session_->close = session_->cancel = ClosedByProgram();
  EXPECT_THAT(RunAndStop(), IsEmpty());
}

TEST_F(RunnerLogTest, NothingIfTheSessionWasClosedWhileTheBufferWas) {
  session_->produce = errors::OutOfRange("end");
  session_->close = session_->cancel = ClosedByProgram();
  for (const Status& first :
       {errors::Aborted("Session 3f is not found."),
        errors::FailedPrecondition("Session is closed.")}) {
    session_ = std::make_shared<FakeSession>();
    session_->produce = errors::OutOfRange("end");
    session_->first_close = first;
    session_->close = session_->cancel = ClosedByProgram();
    EXPECT_THAT(RunAndStop(), IsEmpty()) << first;
  }
}

TEST_F(RunnerLogTest, AnErrorIfTheServerHasLostTheSession) {
  session_->produce = errors::OutOfRange("end");
  session_->close = session_->first_close =
      errors::Aborted("Session 3f is not found.");
  EXPECT_THAT(RunAndStop(),
              ElementsAre(AllOf(HasSubstr("ERROR"), HasSubstr("not found"))));
}

TEST_F(RunnerLogTest, AWarningIfTheStageFails) {
  session_->produce = errors::DataLoss("bad record");
  EXPECT_THAT(RunAndStop(),
              ElementsAre(AllOf(HasSubstr("WARNING"), HasSubstr("'prefetch'"),
                                HasSubstr("bad record"))));
}

TEST_F(RunnerLogTest, NothingIfWhatItReadsIsNotInitialisedYet) {
  session_->produce = errors::FailedPrecondition("not been initialized");
  EXPECT_THAT(RunAndStop(), IsEmpty());
}

TEST_F(RunnerLogTest, OneWarningIfAStageFailsAgainAndAgain) {
  session_->produce = errors::DataLoss("bad record");
  session_->closes_left = 5;
  EXPECT_THAT(RunAndStop(), ElementsAre(HasSubstr("bad record")));
}

TEST_F(RunnerLogTest, ErrorsIfTheServerIsLost) {
  session_->produce = errors::Aborted("Session 3f is not found.");
  session_->close = session_->cancel = errors::Unavailable("server is lost");
  // The producer closes the buffer while Stop cancels it.
  EXPECT_THAT(RunAndStop(),
              UnorderedElementsAre(
                  AllOf(HasSubstr("ERROR"), HasSubstr("close its buffer"),
                        HasSubstr("server is lost"), HasSubstr("not found")),
                  AllOf(HasSubstr("ERROR"), HasSubstr("cancel its buffer"),
                        HasSubstr("server is lost"))));
}

TEST_F(RunnerLogTest, AnErrorOfARegionThatLooksLikeAClosedSessionIsNone) {
  session_->produce = errors::InvalidArgument("Node says: A session is ...");
  EXPECT_THAT(RunAndStop(), ElementsAre(HasSubstr("Node says")));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
