// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_STAGE_REPORT_TO_PYTHON_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_STAGE_REPORT_TO_PYTHON_H_

#include "pybind11/pybind11.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"

namespace tensorflow {
namespace staging {

// Converts a report to a dict of its fields by name. A stage becomes a dict,
// too; any other structure becomes a tuple of its fields, in their order; a
// data type becomes its number; a shape becomes a list in which -1 is an
// unknown dimension, or None if its rank is unknown. The fields `why` and
// `step_only` of the nodes are not in their tuples: "why_of" has the first for
// each node, and "step_only" the indices of the nodes for which the second is
// true. The caller holds the GIL.
pybind11::dict ToPython(const StageReport& report);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_STAGE_REPORT_TO_PYTHON_H_
