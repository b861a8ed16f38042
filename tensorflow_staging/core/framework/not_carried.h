// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_NOT_CARRIED_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_NOT_CARRIED_H_

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Returns the error for a step that needs output `output` of node `node`, which
// the records of stage `stage` do not carry.
inline Status NotCarriedError(const std::string& node, int output,
                              const std::string& stage) {
  return errors::FailedPrecondition(
      "Tensor '", node, ":", output,
      "' is computed ahead of the step, in stage '", stage,
      "'. The records do not carry it: the step did not use it when the stage "
      "began, or it is in a loop, a conditional or a tf.TensorArray. And the "
      "step cannot compute it again: it is drawn, or calls Python or has "
      "another side effect, or it is an element of a source and "
      "tf.SmartStageOptions has carry_elements=False, or the stage joins "
      "sources by tf.prefetch_join and each record is of one of them. To use "
      "it, give it to tf.staged or tf.prefetch_join with the other features of "
      "the stage or, for a stage of SmartStage, call "
      "tf.train.mark_target_node([tf.identity(x)]), where x is the tensor, "
      "before the session is created.");
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_NOT_CARRIED_H_
