// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_AHEAD_IN_PYTHON_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_AHEAD_IN_PYTHON_H_

#include "pybind11/pybind11.h"

namespace tensorflow {
namespace staging {

// Adds to the module what divided functions need (core/ahead).
void AddAhead(pybind11::module_* module);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_AHEAD_IN_PYTHON_H_
