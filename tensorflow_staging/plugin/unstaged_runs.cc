// SPDX-License-Identifier: Apache-2.0
//
// In the place of the file of the same name in core/smart_stage/: only a patch of
// TensorFlow could let a run have another graph than its session.

#include "tensorflow_staging/core/smart_stage/unstaged_runs.h"

namespace tensorflow {
namespace staging {

bool CanUnstageForRun() { return false; }

}  // namespace staging
}  // namespace tensorflow
