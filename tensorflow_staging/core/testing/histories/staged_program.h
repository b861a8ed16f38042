// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_STAGED_PROGRAM_H_
#define TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_STAGED_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow_staging/core/testing/histories/iterator.h"
#include "tensorflow_staging/core/testing/histories/program.h"
#include "tensorflow_staging/core/testing/histories/stage_of_program.h"

namespace tensorflow {
namespace staging {

// The program with a stage for each region.
class StagedProgram {
 public:
  explicit StagedProgram(const Program& program);
  ~StagedProgram();

  bool is_running() const { return is_running_; }
  void Start();
  void Stop(scheduled::Random* random);

  Result Step(CancellationManager* cancellation);
  Result ReadBeside(int64_t source);
  void Change(int64_t source, const Iterator::Saved& saved) {
    iterators_[source]->Change(saved);
  }
  Iterator::Saved Save(int64_t source, const SaveMoment& moment) {
    return iterators_[source]->Save(moment);
  }
  void SetMode(int64_t mode) { mode_ = mode; }
  void Discard();

  // What is wrong after Stop; empty if nothing is.
  std::string Check() const;

 private:
  std::atomic<int64_t> mode_{0};
  Iterators iterators_;
  std::vector<std::unique_ptr<StageOfProgram>> stages_;
  bool is_running_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_STAGED_PROGRAM_H_
