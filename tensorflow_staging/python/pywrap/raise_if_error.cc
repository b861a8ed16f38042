// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/raise_if_error.h"

#include "pybind11/pybind11.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {

void RaiseIfError(const Status& status) {
  if (status.ok()) return;
  const py::object type =
      py::module_::import("tensorflow.python.framework.errors_impl")
          .attr("exception_type_from_error_code")(status.raw_code());
  // A message may quote user data that is not valid UTF-8.
  const auto message = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
      status.message().data(), status.message().size(), "replace"));
  const py::object error = type(py::none(), py::none(), message);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace staging
}  // namespace tensorflow
