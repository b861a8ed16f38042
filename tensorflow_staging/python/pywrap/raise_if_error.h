// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_RAISE_IF_ERROR_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_RAISE_IF_ERROR_H_

#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Raises the class of tf.errors for the code of `status`, unless it is OK. The
// caller holds the GIL.
void RaiseIfError(const Status& status);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_RAISE_IF_ERROR_H_
