// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_PREFETCH_RUNNER_IN_PYTHON_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_PREFETCH_RUNNER_IN_PYTHON_H_

#include "pybind11/pybind11.h"

namespace tensorflow {
namespace staging {

// Adds to the module the class PrefetchRunner.
void AddPrefetchRunner(pybind11::module_* module);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_PREFETCH_RUNNER_IN_PYTHON_H_
