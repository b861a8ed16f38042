// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_SAVE_MOMENT_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_SAVE_MOMENT_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {
namespace staging {

class ReadSet;

// The moment that a save of iterators keeps. A session's run saves them one
// after the other, and another thread's step may take a record in between: what
// it uses after the first of them was saved counts as not yet used for all.
//
// The run's step container owns this object, and the moment is over with the
// run. Eager ops, which share a step container, have a moment each.
class SaveMoment : public ResourceBase {
 public:
  // Returns that of the run of `ctx`, which begins with the first call.
  static core::RefCountPtr<SaveMoment> Of(OpKernelContext* ctx);

  // The latest moment. What is used from then on has this time.
  static int64_t Now();
  // Whether a save that has not ended may need what `used` has used.
  static bool MayNeed(const ReadSet& used);

  SaveMoment();
  ~SaveMoment() override;

  int64_t value() const { return value_; }

  std::string DebugString() const override { return "SaveMoment"; }

 private:
  int64_t value_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_SAVE_MOMENT_H_
