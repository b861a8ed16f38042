// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_UNSTAGED_RUNS_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_UNSTAGED_RUNS_H_

namespace tensorflow {
namespace staging {

// Whether a stage can be unstaged for a run of its session (FindGraphForRun).
bool CanUnstageForRun();

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_UNSTAGED_RUNS_H_
