// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_COLOCATION_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_COLOCATION_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns the value of kColocationAttrName for a node that must be on the same
// device as `node`.
inline std::vector<std::string> ColocatedWith(const Node& node) {
  return {absl::StrCat(kColocationGroupPrefix, node.name())};
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_COLOCATION_H_
