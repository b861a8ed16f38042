// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/plugin/name_in_program.h"

#include <optional>

#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {

std::string NameInProgram(const Node& node) {
  std::optional<CloneMark> mark;
  if (ReadCloneMark(node, &mark).ok() && mark) return mark->original;
  return CopiedNode(node).value_or(node.name());
}

}  // namespace staging
}  // namespace tensorflow
