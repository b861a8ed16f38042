// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/histories/stage_of_program.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runner/run_outcomes.h"
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
  options_.add_closed_exceptions(error::OUT_OF_RANGE);
  if (program.ignores_errors) options_.add_ignored_exceptions(error::DATA_LOSS);
}

void StageOfProgram::Start() {
  ProducersOptions options;
  options.stage = options_.name();
  options.sources.resize(program_.num_producers);
  options.any_order = program_.any_order;
  producers_ = std::make_shared<Producers>(std::move(options), this);
  producers_->Start();
  buffer_->Resume();
  producers_->Begin();
}

void StageOfProgram::Stop() {
  producers_->Stop();
  buffer_->Cancel();
}

void StageOfProgram::AwaitStop() { producers_->Join(); }

core::RefCountPtr<Stage> StageOfProgram::FindStage() const {
  return tsl::core::GetNewRef<Stage>(buffer_.get());
}

RunOutcome StageOfProgram::OutcomeOf(const Status& error) const {
  return staging::OutcomeOf(options_, error);
}

Status StageOfProgram::Close(int source, uint64_t number, const Status& cause) {
  buffer_->Close(cause, IdOf(source, number));
  return OkStatus();
}

Status StageOfProgram::ReadStats(BufferStats* stats) {
  return errors::Unimplemented("No number of producers is chosen.");
}

Status StageOfProgram::Run(int source, const std::shared_ptr<StagedRun>& run,
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
  TF_RETURN_IF_ERROR(region_.RunReads(mode_, get_next, &values));
  run->EndReads();
  TF_RETURN_IF_ERROR(region_.Compute(values));
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
  buffer_->PutForRun(
      run, std::move(record), /*timeout_millis=*/0, cancellation,
      [](TensorBuffer::Record*) {},
      [&](const Status& status) {
        put = status;
        done.Notify();
      });
  done.WaitForNotification();
  return put;
}

}  // namespace staging
}  // namespace tensorflow
