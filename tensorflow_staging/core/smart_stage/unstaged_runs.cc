// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/unstaged_runs.h"

namespace tensorflow {
namespace staging {

bool CanUnstageForRun() { return true; }

}  // namespace staging
}  // namespace tensorflow
