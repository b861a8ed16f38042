// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/histories/staged_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace staging {

StagedProgram::StagedProgram(const Program& program) {
  for (int64_t i = 0; i < program.num_sources; ++i) {
    iterators_.push_back(std::make_unique<Iterator>());
  }
  StageOfProgram* before = nullptr;
  for (size_t i = 0; i < program.regions.size(); ++i) {
    stages_.push_back(std::make_unique<StageOfProgram>(program, i, before,
                                                       &iterators_, &mode_));
    before = stages_.back().get();
  }
}

StagedProgram::~StagedProgram() { CHECK(!is_running_); }

void StagedProgram::Start() {
  for (const auto& stage : stages_) stage->Start();
  is_running_ = true;
}

void StagedProgram::Stop(scheduled::Random* random) {
  std::vector<StageOfProgram*> stages;
  for (const auto& stage : stages_) stages.push_back(stage.get());
  if (random->OneIn(2)) std::reverse(stages.begin(), stages.end());
  for (StageOfProgram* stage : stages) stage->Stop();
  for (StageOfProgram* stage : stages) stage->AwaitStop();
  is_running_ = false;
}

Result StagedProgram::Step(CancellationManager* cancellation) {
  Result result;
  Notification done;
  stages_.back()->buffer()->TakeAsync(
      cancellation, [&](const Status& status, TensorBuffer::Taken taken) {
        result.status = status;
        for (const Tensor& tensor : taken.record) {
          result.values.push_back(tensor.scalar<int64_t>()());
        }
        done.Notify();
      });
  done.WaitForNotification();
  return result;
}

Result StagedProgram::ReadBeside(int64_t source) {
  Result result;
  CancellationManager cancellation;
  const OpKernel op("beside", "IteratorGetNext");
  OpKernelContext ctx(op, &cancellation);
  std::vector<Tensor> element;
  bool is_end = false;
  result.status = iterators_[source]->GetNext(&ctx, &element, &is_end);
  if (is_end) result.status = errors::OutOfRange("End of sequence");
  if (result.status.ok()) {
    result.values.push_back(element[0].scalar<int64_t>()());
  }
  return result;
}

void StagedProgram::Discard() {
  for (const auto& stage : stages_) stage->buffer()->Discard();
}

std::string StagedProgram::Check() const {
  for (const auto& stage : stages_) {
    const std::string text = stage->buffer()->DebugString();
    if (!absl::StrContains(
            text, ", 0 runs active, 0 runs, 0 puts and 0 takes waiting")) {
      return absl::StrCat("Something is left: ", text);
    }
    const BufferStats stats = stage->buffer()->GetStats();
    if (stats.put() != stats.taken() + stats.discarded() + stats.records()) {
      return absl::StrCat("The numbers do not add up: ", text);
    }
  }
  return "";
}

}  // namespace staging
}  // namespace tensorflow
