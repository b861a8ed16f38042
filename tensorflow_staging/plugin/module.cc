// SPDX-License-Identifier: Apache-2.0
//
// The plugin's library as a Python module. It has the name of the fork's module,
// since the same Python code calls both, and most of what that has.
// Importing it registers our ops, kernels and graph passes.

#include "pybind11/pybind11.h"
#include "pybind11/stl.h"
#include "tensorflow_staging/core/framework/thread_name.h"
#include "tensorflow_staging/plugin/fed_ahead.h"
#include "tensorflow_staging/python/pywrap/ahead_in_python.h"
#include "tensorflow_staging/python/pywrap/prefetch_runner_in_python.h"
#include "tensorflow_staging/python/pywrap/session_questions_in_python.h"

namespace tensorflow {
namespace staging {

PYBIND11_MODULE(_pywrap_staging, m) {
  m.doc() = "The C++ of staging. Private: programs use tensorflow_staging.";
  m.def("num_stage_threads", &ScopedStageThread::Count,
        "Returns how many threads of this process run stages.");
  m.def(
      "set_feeds", &SetFeedsOfThread, pybind11::arg("tensors"),
      R"doc(Says what the runs of sessions feed that this thread begins from now on.

Args:
  tensors: The names of the fed tensors.
)doc");
  AddPrefetchRunner(&m);
  AddSessionQuestions(&m);
  AddAhead(&m);
}

}  // namespace staging
}  // namespace tensorflow
