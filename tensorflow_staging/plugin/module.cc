// SPDX-License-Identifier: Apache-2.0
//
// The plugin's library as a Python module. It has the name of the fork's module,
// since the same Python code calls both, and the part of it that functions need.
// Importing it registers our ops, kernels and graph passes.

#include "pybind11/pybind11.h"
#include "tensorflow_staging/core/framework/thread_name.h"
#include "tensorflow_staging/python/pywrap/ahead_in_python.h"

namespace tensorflow {
namespace staging {

PYBIND11_MODULE(_pywrap_staging, m) {
  m.doc() = "The C++ of staging. Private: programs use tensorflow_staging.";
  m.def("num_stage_threads", &ScopedStageThread::Count,
        "Returns how many threads of this process run stages.");
  AddAhead(&m);
}

}  // namespace staging
}  // namespace tensorflow
