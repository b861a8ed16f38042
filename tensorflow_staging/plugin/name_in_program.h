// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_NAME_IN_PROGRAM_H_
#define TENSORFLOW_STAGING_PLUGIN_NAME_IN_PROGRAM_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns the name that `node` of a rewritten graph has in the graph of the program,
// where a region has clones and copies of that graph's nodes.
std::string NameInProgram(const Node& node);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_NAME_IN_PROGRAM_H_
