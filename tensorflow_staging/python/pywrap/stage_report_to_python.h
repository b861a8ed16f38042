// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_STAGE_REPORT_TO_PYTHON_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_STAGE_REPORT_TO_PYTHON_H_

#include "pybind11/pybind11.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"

namespace tensorflow {
namespace staging {

// The fields of a report by name. Stages are dicts, too; other structures are
// tuples of their fields, a data type is its number, a shape is None or a list
// in which -1 stands for what is unknown. Needs the GIL.
pybind11::dict ToPython(const StageReport& report);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_STAGE_REPORT_TO_PYTHON_H_
