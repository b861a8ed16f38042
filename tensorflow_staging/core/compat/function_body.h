// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_COMPAT_FUNCTION_BODY_H_
#define TENSORFLOW_STAGING_CORE_COMPAT_FUNCTION_BODY_H_

#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/framework/function.h"

namespace tensorflow {
namespace staging {
namespace compat {

template <typename Body>
auto DefinitionIn(const Body& body, int) -> decltype((body.fdef)) {
  return body.fdef;
}

// Later versions share it with the library.
template <typename Body>
auto DefinitionIn(const Body& body, long)  // NOLINT(runtime/int)
    -> decltype(body.record->fdef()) {
  return body.record->fdef();
}

}  // namespace compat

// The function whose graph a body is.
inline const FunctionDef& DefinitionOf(const FunctionBody& body) {
  return compat::DefinitionIn(body, 0);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_COMPAT_FUNCTION_BODY_H_
