// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_ASKING_SESSION_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_ASKING_SESSION_H_

namespace tensorflow {
namespace staging {

// The handle of a session that only asks what the graph passes would do
// (placed_records.h): it runs nothing, so the passes log nothing of it.
inline constexpr char kAskingSession[] = "staging_asks";

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_ASKING_SESSION_H_
