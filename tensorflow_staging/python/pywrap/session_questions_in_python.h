// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_SESSION_QUESTIONS_IN_PYTHON_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_SESSION_QUESTIONS_IN_PYTHON_H_

#include "pybind11/pybind11.h"

namespace tensorflow {
namespace staging {

// Adds to the module what Python asks a session about its stages.
void AddSessionQuestions(pybind11::module_* module);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_SESSION_QUESTIONS_IN_PYTHON_H_
