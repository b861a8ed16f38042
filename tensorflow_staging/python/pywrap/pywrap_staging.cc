// SPDX-License-Identifier: Apache-2.0
//
// The module _pywrap_staging, through which all Python code of staging calls
// C++. It holds no logic: it converts arguments, results and errors, and
// releases the GIL while C++ waits or computes for long.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pybind11/pybind11.h"
#include "pybind11/stl.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/thread_name.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/runtime/partial_run_pool.h"
#include "tensorflow_staging/core/smart_stage/placed_records.h"
#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"
#include "tensorflow_staging/python/pywrap/ahead_in_python.h"
#include "tensorflow_staging/python/pywrap/parsed_message.h"
#include "tensorflow_staging/python/pywrap/prefetch_runner_in_python.h"
#include "tensorflow_staging/python/pywrap/raise_if_error.h"
#include "tensorflow_staging/python/pywrap/session_questions_in_python.h"
#include "tensorflow_staging/python/pywrap/stage_report_to_python.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// Builds a graph from its definition, as a session does.
std::unique_ptr<Graph> BuildGraph(const py::bytes& graph_def) {
  const GraphDef def = Parse<GraphDef>(graph_def, "graph_def");
  auto graph = std::make_unique<Graph>(OpRegistry::Global());
  Status status;
  {
    py::gil_scoped_release release;
    status =
        ConvertGraphDefToGraph(GraphConstructorOptions(), def, graph.get());
  }
  RaiseIfError(status);
  return graph;
}

// Implements call_under_partial_run_options; see partial_run_pool.py.
py::object CallUnderPartialRunOptions(const py::bytes& serialized_options,
                                      const py::function& call) {
  const auto options = Parse<RunOptions>(serialized_options, "options");
  ScopedPartialRunOptions scope(options);
  return call();
}

py::dict ReportOnGraph(const py::bytes& graph_def, const py::bytes& config) {
  const auto session_config = Parse<ConfigProto>(config, "config");
  RaiseIfError(CheckSmartStageSettings(session_config));
  OptimizerFields fields;
  RaiseIfError(DecodeOptimizerFields(
      session_config.graph_options().optimizer_options(), &fields));
  ReportOptions options;
  options.name = fields.smart_stage_options().name();
  if (fields.smart_stage_options().omit_elements()) {
    options.content = RecordContent::kBoundaryOnly;
  }
  if (fields.do_async_embedding()) {
    options.smart_stage = fields.do_smart_stage();
    options.stale_steps = int64_t{fields.async_embedding_options().capacity()} +
                          fields.async_embedding_options().threads_num();
  }
  const std::unique_ptr<Graph> graph = BuildGraph(graph_def);
  StageReport report;
  Status status;
  {
    py::gil_scoped_release release;
    status = ReportStages(*graph, options, &report);
  }
  RaiseIfError(status);
  return ToPython(report);
}

std::map<std::string, RecordDestinations> DestinationsOfRecords(
    const py::bytes& graph_def, const py::bytes& config) {
  const auto graph = Parse<GraphDef>(graph_def, "graph_def");
  const auto session_config = Parse<ConfigProto>(config, "config");
  std::map<std::string, RecordDestinations> stages;
  Status status;
  {
    py::gil_scoped_release release;
    status = FindRecordDestinations(graph, session_config, &stages);
  }
  RaiseIfError(status);
  return stages;
}

void AddReport(py::module_& m) {
  m.def(
      "stage_report", &ReportOnGraph, py::arg("graph_def"), py::arg("config"),
      R"doc(Reports what SmartStage does to a graph, or would do if it were on.

Args:
  graph_def: A serialized `GraphDef`, as bytes.
  config: The session's serialized `ConfigProto`, as bytes.

Returns:
  A dict with the fields of `StageReport` (core/graph/report/stage_report.h) by
  name; stage_report_to_python.h says how each is converted.

Raises:
  ValueError: If an argument is not the serialized message that it must be.
  tf.errors.InvalidArgumentError: If the configuration is wrong.
)doc");
  m.def("record_destinations", &DestinationsOfRecords, py::arg("graph_def"),
        py::arg("config"),
        R"doc(Finds which GPU gets what of the records of the stages of a graph.

Args:
  graph_def: As for stage_report.
  config: As for stage_report.

Returns:
  A dict with a list for each stage: the name of each GPU and the names of the
  tensors that it gets. The first GPU gets them in place of the host, and further
  ones get copies. The host has the records of a stage that is not there.

Raises:
  ValueError: If an argument is not the serialized message that it must be.
  tf.errors.OpError: If that is known to the session alone
    (core/smart_stage/placed_records.h).
)doc");
}

void AddPartialRuns(py::module_& m) {
  m.def("call_under_partial_run_options", &CallUnderPartialRunOptions,
        py::arg("options"), py::arg("call"),
        R"doc(Calls a function that sets up partial runs with these options.

Args:
  options: A serialized `RunOptions` message, as bytes.
  call: The function, called in this thread without arguments.

Returns:
  The result of `call`.

Raises:
  ValueError: If `options` is not such a message.
)doc");
}

}  // namespace

PYBIND11_MODULE(_pywrap_staging, m) {
  m.doc() =
      "The C++ of staging. Private: programs use tf.make_prefetch_hook().";
  m.def("num_stage_threads", &ScopedStageThread::Count,
        "Returns how many threads of this process run stages.");
  AddPrefetchRunner(&m);
  AddSessionQuestions(&m);
  AddReport(m);
  AddPartialRuns(m);
  AddAhead(&m);
}

}  // namespace staging
}  // namespace tensorflow
