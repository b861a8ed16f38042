// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_DRAWS_AHEAD_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_DRAWS_AHEAD_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

// What the runs of a divided function draw from random generators: from copies of
// the program's generators, in the order of the runs.
//
// Draws go back by the rule that elements go back by (sources/roll_back.h): each
// run has an entry in a ledger, the states with which it began. So a run that drew
// after one that goes back is stale, and the next run begins with the states of
// the first one that went back.
//
// Thread-safe.
class DrawsAhead {
 public:
  DrawsAhead() : ledger_(std::make_shared<Source>()) {}
  // What holds an entry owns the ledger.
  ~DrawsAhead() { ledger_->Clear(); }
  DrawsAhead(const DrawsAhead&) = delete;
  DrawsAhead& operator=(const DrawsAhead&) = delete;

  void DrawFrom(std::vector<core::RefCountPtr<Var>> copies)
      TF_LOCKS_EXCLUDED(mu_);
  // How many copies there are.
  size_t size() const TF_LOCKS_EXCLUDED(mu_);

  // The run that has read `reads` is about to draw, and no other run is drawing.
  void Begin(const std::shared_ptr<ReadSet>& reads) TF_LOCKS_EXCLUDED(mu_);
  // The next run begins with these states. What was drawn and no step has used
  // goes back.
  void GoOnFrom(const std::vector<Tensor>& states) TF_LOCKS_EXCLUDED(mu_);

 private:
  const std::shared_ptr<Source> ledger_;
  mutable mutex mu_;
  std::vector<core::RefCountPtr<Var>> copies_ TF_GUARDED_BY(mu_);
  std::optional<std::vector<Tensor>> next_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_DRAWS_AHEAD_H_
