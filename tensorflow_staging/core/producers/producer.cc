// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/producer.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"

namespace tensorflow {
namespace staging {
namespace {

// How often a producer whose source has ended tries again while another source
// of the stage continues: its iterator may have been initialised again.
constexpr std::chrono::milliseconds kEndedSourcePeriod(100);
// The longest pause of a producer of a distributed session that closes the
// buffer repeatedly.
constexpr std::chrono::milliseconds kLongestPause(100);
// How many runs in a row may fail with an ignored error before their producer
// pauses, and its longest pause. So a stretch of bad records is skipped
// quickly, and a source that is broken for good takes about 1 % of a core.
constexpr int64_t kIgnoredWithoutPause = 100;
constexpr std::chrono::milliseconds kLongestIgnoredPause(10);

// Not 0, which is no producer's (ProducerId).
uint64_t NextNumber() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Says what to do about an error that names a placeholder which the program may
// well feed: to its steps.
Status WithAdvice(const std::string& stage, const Status& cause) {
  if (!absl::StrContains(cause.message(),
                         "must feed a value for placeholder")) {
    return cause;
  }
  Status advised = cause;
  errors::AppendToMessage(
      &advised, "Stage '", stage,
      "' runs by itself, so what a step feeds does not reach it. Give "
      "tf.staged the values, by feed_dict or feed_generator, or stage only "
      "what does not depend on the placeholder.");
  return advised;
}

// Of a run that succeeded without putting a record. Ends the stage, also if a
// run may fail with the same type of error: the step would silently skip a
// record, or wait for ever.
Status NoRecordStatus() {
  return errors::InvalidArgument(
      "The run put no record, because a tensor of the record has no value: it "
      "belongs to a branch that was not chosen. If it does not, TensorFlow's "
      "optimizers can cause this for conditionals of version 1 within each "
      "other: set graph_options.rewrite_options.disable_meta_optimizer, or "
      "call tf.enable_control_flow_v2().");
}

}  // namespace

Producer::Producer(Options options, RegionRuns* runs, ProducerTeam* team)
    : options_(std::move(options)),
      number_(NextNumber()),
      runs_(runs),
      team_(team) {}

void Producer::Work() {
  // What cannot be prepared ends the stage, also if a run may fail with the same
  // type of error.
  const Status prepared = runs_->PrepareProducer(options_.source);
  while (Produce(prepared)) {
  }
}

bool Producer::Produce(const Status& prepared) {
  ProducerTeam::Run run(team_, options_.index, *runs_);
  if (!run.has_begun()) return false;
  if (!prepared.ok()) return EndStage(prepared);
  if (order_ == nullptr && options_.order != nullptr &&
      runs_->FindStage() != nullptr) {
    order_ = options_.order;
  }
  if (order_ != nullptr) order_->Begin(number_);
  if (team_->stopped()) {
    EndInOrder();
    return false;
  }
  Status status;
  int64_t micros = 0;
  const RunOutcome outcome = RunOnce(&status, &micros);
  const bool continues = [&] {
    if (outcome == RunOutcome::kRecord) {
      // The first run prepares what later ones reuse.
      run.CountRecord(has_produced_ ? std::optional(micros) : std::nullopt);
      has_produced_ = true;
      pause_ = pause_.zero();
      ignored_in_a_row_ = 0;
      has_closed_ = false;
      if (options_.on_record != nullptr) options_.on_record();
      return true;
    }
    if (team_->stopped()) return false;
    switch (outcome) {
      case RunOutcome::kIgnored:
        return CountIgnored(status);
      case RunOutcome::kEndOfData:
        return EndSource(&run);
      case RunOutcome::kFailed:
        return EndStage(status);
      default:
        return outcome == RunOutcome::kStale;
    }
  }();
  EndInOrder();
  return continues;
}

RunOutcome Producer::RunOnce(Status* status, int64_t* micros) {
  std::shared_ptr<StagedRun> run;
  if (core::RefCountPtr<Stage> stage = runs_->FindStage()) {
    run = std::make_shared<StagedRun>(
        std::move(stage), runs_->IdOf(options_.source, number_), order_);
    *status = run->AwaitAdmission(/*cancellation=*/nullptr);
    if (!status->ok()) return runs_->OutcomeOf(*status);
  }
  bool has_put = false;
  const auto began = std::chrono::steady_clock::now();
  {
    // In a profiler's trace, the run is an event on its producer's thread.
    const tsl::profiler::TraceMe trace([this] {
      return tsl::profiler::TraceMeEncode("StagedRun",
                                          {{"stage", options_.stage}});
    });
    *status = runs_->Run(options_.source, run, &has_put);
  }
  *micros = std::chrono::duration_cast<std::chrono::microseconds>(
                std::chrono::steady_clock::now() - began)
                .count();
  // Errors and the end of the data come after the records before them.
  if (order_ != nullptr) order_->AwaitTurn(number_);
  RunOutcome outcome = RunOutcome::kRecord;
  if (run != nullptr && run->End(*status)) {
    outcome = RunOutcome::kStale;
  } else if (!status->ok()) {
    outcome = runs_->OutcomeOf(*status);
  } else if (!has_put) {
    *status = NoRecordStatus();
    outcome = RunOutcome::kFailed;
  }
  // Before the step can see the error and go on.
  if (order_ != nullptr && outcome != RunOutcome::kRecord &&
      outcome != RunOutcome::kIgnored) {
    order_->AbandonLater(number_);
  }
  return outcome;
}

bool Producer::CountIgnored(const Status& error) {
  const int64_t ignored = team_->CountIgnored();
  LOG_EVERY_N_SEC(WARNING, 1)
      << absl::StrCat("Stage '", options_.stage,
                      "' ignored an error, because ignored_exception_types "
                      "contains its type; ",
                      ignored, " so far. ")
      << error;
  EndInOrder();
  return ++ignored_in_a_row_ <= kIgnoredWithoutPause ||
         PauseLonger(kLongestIgnoredPause);
}

bool Producer::EndSource(ProducerTeam::Run* run) {
  bool run_again = false;
  if (run->EndSource(options_.source_name, &run_again)) {
    return EndStage(OkStatus());
  }
  EndInOrder();
  return run_again || team_->Pause(kEndedSourcePeriod);
}

bool Producer::EndStage(const Status& cause) {
  if (cause.ok() && order_ == nullptr && team_->LetErrorsComeFirst()) {
    return true;
  }
  team_->CountEnd(/*is_error=*/!cause.ok());
  if (!CloseBuffer(cause)) return false;
  has_closed_ = true;
  EndInOrder();
  // The next run waits for the stage, unless it is on a server.
  return runs_->FindStage() != nullptr || PauseLonger(kLongestPause);
}

bool Producer::CloseBuffer(const Status& cause) {
  const Status status =
      runs_->Close(options_.source, number_, WithAdvice(options_.stage, cause));
  // A stage that has started before the program has initialised what it reads:
  // the next step tries again, and a step that is too early gets the error.
  const bool awaits_initialization =
      errors::IsFailedPrecondition(cause) && team_->records() == 0;
  // CANCELLED says that the session is closing or has been closed; then the
  // cause says the same in other words, for example that the server does not
  // know the session any more, and no step asks for it. A closing session
  // cancels its runs first, so CANCELLED as the cause needs no warning either.
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.stage
               << "' could not close its buffer: " << status
               << (cause.ok() ? "" : " The stage ended with an error: ")
               << (cause.ok() ? "" : cause.ToString());
  } else if (status.ok() && !cause.ok() && !errors::IsCancelled(cause) &&
             !has_closed_ && !awaits_initialization) {
    LOG(WARNING) << "Stage '" << options_.stage << "' ends with an error, "
                 << "which the step that takes its records will report: "
                 << cause;
  }
  return status.ok();
}

bool Producer::PauseLonger(std::chrono::milliseconds longest) {
  const std::chrono::milliseconds pause = pause_;
  pause_ = std::min(2 * pause + std::chrono::milliseconds(1), longest);
  return team_->Pause(pause);
}

}  // namespace staging
}  // namespace tensorflow
