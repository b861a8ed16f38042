// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_ITERATOR_H_
#define TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_ITERATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/ledger.h"
#include "tensorflow_staging/core/sources/save_moment.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/testing/histories/program.h"

namespace tensorflow {
namespace staging {

// What the patched IteratorResource does with the engine.
class Iterator {
 public:
  struct Saved {
    PlainProgram::Source position;
    Outcomes outcomes;
  };

  Iterator() = default;
  ~Iterator();
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  Status GetNext(OpKernelContext* ctx, std::vector<Tensor>* element,
                 bool* is_end);
  // An initialiser, or a restore.
  void Change(const Saved& saved);
  Saved Save(const SaveMoment& moment);

 private:
  struct State {
    mutex mu;
    PlainProgram::Source position TF_GUARDED_BY(mu);
    bool is_cancelled TF_GUARDED_BY(mu) = false;

    bool is_initialised();
    Status GetNext(std::vector<Tensor>* element, bool* is_end);
  };

  const std::shared_ptr<Source> source_ = Source::Of(this);
  mutex mu_;
  std::shared_ptr<State> state_ TF_GUARDED_BY(mu_) = std::make_shared<State>();
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_ITERATOR_H_
