// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_FUNCTIONS_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_FUNCTIONS_H_

#include "pybind11/pybind11.h"

namespace tensorflow {
namespace staging {

// Adds to the module what divided functions need (core/ahead).
void AddFunctions(pybind11::module_* module);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_FUNCTIONS_H_
