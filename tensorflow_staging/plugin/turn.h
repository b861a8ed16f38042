// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_TURN_H_
#define TENSORFLOW_STAGING_PLUGIN_TURN_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

// The turn in which an iterator is changed. In the fork, the lock of the iterator
// keeps its version and its state together. That lock is out of reach here, so a
// change waits until no read that takes turns is in progress.
class Turn {
 public:
  explicit Turn(std::shared_ptr<Source> source) : source_(std::move(source)) {}
  ~Turn() {
    if (number_ != 0) source_->EndTurn(number_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Blocks the thread.
  Status Await(CancellationManager* cancellation) {
    TF_ASSIGN_OR_RETURN(number_, source_->AwaitTurn(cancellation));
    return OkStatus();
  }

 private:
  const std::shared_ptr<Source> source_;
  int64_t number_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_TURN_H_
