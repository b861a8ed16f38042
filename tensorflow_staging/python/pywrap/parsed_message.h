// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_PARSED_MESSAGE_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_PARSED_MESSAGE_H_

#include <string>

#include "pybind11/pybind11.h"
#include "tensorflow/core/platform/strcat.h"

namespace tensorflow {
namespace staging {

// Parses `serialized`; `what` is the name of the argument, for the error.
template <typename Message>
Message Parse(const pybind11::bytes& serialized, const char* what) {
  Message message;
  if (!message.ParseFromString(std::string(serialized))) {
    throw pybind11::value_error(strings::StrCat(
        what, " is not a serialized ", message.GetTypeName(), " message."));
  }
  return message;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_PARSED_MESSAGE_H_
