// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/histories/stage_of_program.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runner/producer.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

TensorBuffer* MakeBuffer(const std::string& name, const Region& region) {
  TensorBuffer::Options options;
  options.name = name;
  options.capacity = region.capacity;
  return new TensorBuffer(options);
}

// Takes a record for a run of another stage, as kernels/tensor_buffer_ops.cc
// does. `done` is called in the thread that ends the wait.
using Taken =
    std::function<void(const Status& status, const TensorBuffer::Record&)>;

void TakeForRun(TensorBuffer* buffer, std::shared_ptr<StagedRun> run,
                CancellationManager* cancellation, Taken done) {
  const StagedRun* const taker = run.get();
  buffer->TakeAsync(
      cancellation,
      [buffer, run, cancellation, done](const Status& status,
                                        TensorBuffer::Taken taken) {
        if (taken.reads != nullptr &&
            !RollBack().Absorb(taken.reads, run->reads())) {
          TakeForRun(buffer, run, cancellation, done);
          return;
        }
        if (status.ok() && !run->IsStale()) {
          done(status, taken.record);
          return;
        }
        Env::Default()->SchedClosure([run, cancellation, status, done] {
          Status failure = status;
          if (run->IsStale()) {
            run->AwaitReads();
            failure = run->StaleStatus();
          } else if (!cancellation->IsCancelled()) {
            run->Fail(status);
          }
          done(failure, {});
        });
      },
      taker);
}

}  // namespace

// As the method of runner/prepared_runs.cc.
RunOutcome PreparedRuns::ProduceRecord(int source, uint64_t producer,
                                       Status* status, int64_t* micros) {
  const auto run = std::make_shared<StagedRun>(
      tsl::core::GetNewRef<Stage>(buffer_), producer);
  *status = run->AwaitAdmission(/*cancellation=*/nullptr);
  if (!status->ok()) return OutcomeOf(options_, *status);
  bool has_put = false;
  *status = run_region_(run, &has_put);
  if (run->End(*status)) return RunOutcome::kStale;
  if (!status->ok()) return OutcomeOf(options_, *status);
  CHECK(has_put);
  return RunOutcome::kRecord;
}

Status PreparedRuns::Close(int source, uint64_t producer, const Status& cause) {
  buffer_->Close(cause, producer);
  return OkStatus();
}

StageOfProgram::StageOfProgram(const Program& program, int64_t index,
                               StageOfProgram* before,
                               const Iterators* iterators,
                               const std::atomic<int64_t>* mode)
    : program_(program),
      region_(program.regions[index]),
      before_(before),
      iterators_(*iterators),
      mode_(*mode),
      buffer_(MakeBuffer(absl::StrCat("stage_", index), region_)) {
  options_.set_name(buffer_->name());
  for (int64_t i = 0; i < program.num_producers; ++i) {
    options_.add_fetch_ops("put");
  }
  options_.add_closed_exceptions(error::OUT_OF_RANGE);
  if (program.ignores_errors) options_.add_ignored_exceptions(error::DATA_LOSS);
}

void StageOfProgram::Start() {
  runs_ = std::make_unique<PreparedRuns>(
      options_, buffer_.get(),
      [this](const std::shared_ptr<StagedRun>& run, bool* has_put) {
        return RunRegion(run, has_put);
      });
  team_ = std::make_unique<ProducerTeam>(/*sources=*/1);
  for (int i = 0; i < options_.fetch_ops_size(); ++i) {
    team_->Join();
    threads_.push_back(std::make_unique<Thread>(
        absl::StrCat(options_.name(), "_producer_", i), [this, i] {
          Producer(i, options_, runs_.get(), team_.get(), nullptr).Work();
          team_->Leave();
        }));
  }
  buffer_->Resume();
  team_->SetActive(options_.fetch_ops_size());
}

void StageOfProgram::Stop() {
  team_->Stop();
  buffer_->Cancel();
}

Status StageOfProgram::RunRegion(const std::shared_ptr<StagedRun>& run,
                                 bool* has_put) {
  CancellationManager cancellation;
  const ScopedStagedRun scope(&cancellation, run);
  Values values;
  if (before_ != nullptr) {
    TF_RETURN_IF_ERROR(Take(run, &cancellation, &values));
  }
  const auto get_next = [this, &cancellation](const Read& read,
                                              int64_t* value) {
    const OpKernel op("next", read.is_optional ? "IteratorGetNextAsOptional"
                                               : "IteratorGetNext");
    OpKernelContext ctx(op, &cancellation);
    std::vector<Tensor> element;
    bool is_end = false;
    TF_RETURN_IF_ERROR(
        iterators_[read.source]->GetNext(&ctx, &element, &is_end));
    if (is_end && !read.is_optional) {
      return errors::OutOfRange("End of sequence");
    }
    *value = is_end ? kNoValue : element[0].scalar<int64_t>()();
    return OkStatus();
  };
  TF_RETURN_IF_ERROR(region_.Run(mode_, get_next, &values));
  TF_RETURN_IF_ERROR(Put(run, &cancellation, values));
  *has_put = true;
  return OkStatus();
}

Status StageOfProgram::Take(const std::shared_ptr<StagedRun>& run,
                            CancellationManager* cancellation, Values* values) {
  TF_RETURN_IF_ERROR(run->AwaitAdmission(cancellation));
  Notification done;
  Status taken;
  TakeForRun(before_->buffer(), run, cancellation,
             [&](const Status& status, const TensorBuffer::Record& record) {
               taken = status;
               for (const Tensor& tensor : record) {
                 values->push_back(tensor.scalar<int64_t>()());
               }
               done.Notify();
             });
  done.WaitForNotification();
  return taken;
}

Status StageOfProgram::Put(const std::shared_ptr<StagedRun>& run,
                           CancellationManager* cancellation,
                           const Values& values) {
  TensorBuffer::Record record;
  for (int64_t value : values) record.emplace_back(value);
  Notification done;
  Status put;
  buffer_->PutAsync(
      std::move(record), /*timeout_millis=*/0, cancellation,
      [&](const Status& status) {
        if (status.ok()) run->NotePut();
        put = status;
        done.Notify();
      },
      run.get());
  done.WaitForNotification();
  return put;
}

}  // namespace staging
}  // namespace tensorflow
