// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_BUFFER_STATS_TO_PYTHON_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_BUFFER_STATS_TO_PYTHON_H_

#include "pybind11/pybind11.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"

namespace tensorflow {
namespace staging {

// A dict with the fields of `stats`; `error_message` is bytes.
pybind11::dict ToPython(const BufferStats& stats);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_BUFFER_STATS_TO_PYTHON_H_
