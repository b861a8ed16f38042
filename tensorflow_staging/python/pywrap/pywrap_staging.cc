// SPDX-License-Identifier: Apache-2.0
//
// The module _pywrap_staging, through which all Python code of staging calls
// C++. It holds no logic: it converts arguments, results and errors, and
// releases the GIL while C++ waits or computes for long.
//
// It accepts `Session._session` of TensorFlow's Python session as a TF_Session.
// This works only if the build lets the module share the type registry of
// TensorFlow's own modules; see the BUILD file.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pybind11/pybind11.h"
#include "pybind11/stl.h"
#include "tensorflow/c/c_api_internal.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/thread_name.h"
#include "tensorflow_staging/core/graph/plan/stages_before.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"
#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/runtime/partial_run_pool.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"
#include "tensorflow_staging/python/pywrap/buffer_stats_to_python.h"
#include "tensorflow_staging/python/pywrap/functions.h"
#include "tensorflow_staging/python/pywrap/raise_if_error.h"
#include "tensorflow_staging/python/pywrap/stage_report_to_python.h"
#include "tensorflow_staging/python/pywrap/underlying_session.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// The Python class PrefetchRunner. Python calls every method with the GIL held.
class PyPrefetchRunner {
 public:
  PyPrefetchRunner(TF_Session* session, const std::string& serialized_options) {
    PrefetchRunnerOptions options;
    if (!options.ParseFromString(serialized_options)) {
      throw py::value_error(
          "options is not a serialized PrefetchRunnerOptions message.");
    }
    bool closed;
    Status status;
    {
      // Waits while another thread closes the session, which takes as long as
      // the session's server takes to answer.
      py::gil_scoped_release release;
      std::shared_ptr<Session> underlying =
          session == nullptr ? nullptr : UnderlyingSession(session);
      closed = underlying == nullptr;
      if (!closed) {
        status =
            PrefetchRunner::Create(std::move(underlying), options, &runner_);
      }
    }
    if (closed) throw py::value_error("session is closed.");
    RaiseIfError(status);
  }

  ~PyPrefetchRunner() {
    // Joins producers, which may wait for the GIL in a tf.py_function.
    py::gil_scoped_release release;
    runner_.reset();
  }

  void Start() {
    Status status;
    {
      py::gil_scoped_release release;
      status = runner_->Start();
    }
    RaiseIfError(status);
  }

  void Stop() {
    py::gil_scoped_release release;
    runner_->Stop();
  }

  py::dict GetStats() const {
    PrefetchRunner::Stats stats;
    {
      // Waits for a lock, if only for a moment.
      py::gil_scoped_release release;
      stats = runner_->GetStats();
    }
    py::dict result;
    result["name"] = stats.name;
    result["records"] = stats.records;
    result["ignored"] = stats.ignored;
    result["running"] = stats.running;
    result["threads"] = stats.threads;
    result["timed_records"] = stats.timed_records;
    result["record_micros"] = stats.record_micros;
    result["tunes_threads"] = stats.tunes_threads;
    result["threads_settled"] = stats.threads_settled;
    return result;
  }

  py::dict ReadBuffer() {
    BufferStats stats;
    Status status;
    {
      // Waits for the session's server.
      py::gil_scoped_release release;
      status = runner_->ReadBuffer(&stats);
    }
    RaiseIfError(status);
    return ToPython(stats);
  }

 private:
  std::shared_ptr<PrefetchRunner> runner_;
};

// Parses `serialized`; `what` is the name of the argument, for the error.
template <typename Message>
Message Parse(const py::bytes& serialized, const char* what) {
  Message message;
  if (!message.ParseFromString(std::string(serialized))) {
    throw py::value_error(strings::StrCat(what, " is not a serialized ",
                                          message.GetTypeName(), " message."));
  }
  return message;
}

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

// Returns the runners and the notes of a session.
py::tuple RunnersOfSession(TF_Session* session,
                           const std::vector<py::bytes>& manual_stages) {
  std::vector<PrefetchRunnerOptions> known;
  for (const py::bytes& options : manual_stages) {
    known.push_back(Parse<PrefetchRunnerOptions>(options, "manual_stages"));
  }
  std::vector<PrefetchRunnerOptions> runners;
  std::vector<StageNote> notes;
  bool closed;
  Status status;
  {
    // Asks the session, which may be on a server.
    py::gil_scoped_release release;
    const std::shared_ptr<Session> underlying =
        session == nullptr ? nullptr : UnderlyingSession(session);
    closed = underlying == nullptr;
    if (!closed) {
      status = FindRunnersOfSession(underlying.get(), known, &runners, &notes);
    }
  }
  if (closed) throw py::value_error("session is closed.");
  RaiseIfError(status);
  py::list result;
  for (const PrefetchRunnerOptions& runner : runners) {
    result.append(py::bytes(runner.SerializeAsString()));
  }
  py::list texts;
  for (const StageNote& note : notes) {
    texts.append(py::make_tuple(note.unsaved_iterator, note.text));
  }
  return py::make_tuple(result, texts);
}

std::vector<int64_t> FetchCountsInSession(
    TF_Session* session, const std::vector<std::string>& tensors) {
  std::vector<int64_t> counts;
  bool closed;
  Status status;
  {
    py::gil_scoped_release release;
    const std::shared_ptr<Session> underlying =
        session == nullptr ? nullptr : UnderlyingSession(session);
    closed = underlying == nullptr;
    if (!closed) {
      status = FetchCounts(underlying.get(), tensors, &counts);
    }
  }
  if (closed) throw py::value_error("session is closed.");
  RaiseIfError(status);
  return counts;
}

std::vector<std::vector<int>> StagesBeforeInSession(
    TF_Session* session, const std::vector<std::vector<std::string>>& stages) {
  if (session == nullptr) throw py::value_error("session is closed.");
  std::vector<std::vector<int>> before;
  Status status;
  {
    // Another thread may hold the graph's lock for long.
    py::gil_scoped_release release;
    mutex_lock l(session->graph->mu);
    Graph graph(session->graph->graph.flib_def());
    CopyGraph(session->graph->graph, &graph);
    // Stages that read one source become a chain.
    status = AlignStages(NodeFilter(), RecordContent::kElements,
                         RewriteOptions(), &graph);
    if (status.ok()) before = StagesBefore(graph, stages);
  }
  RaiseIfError(status);
  return before;
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

}  // namespace

PYBIND11_MODULE(_pywrap_staging, m) {
  m.doc() =
      "The C++ of staging. Private: programs use tf.make_prefetch_hook().";

  m.def("num_stage_threads", &ScopedStageThread::Count,
        "Returns how many threads of this process run stages.");
  m.def("runners_of_session", &RunnersOfSession, py::arg("session"),
        py::arg("manual_stages"),
        R"doc(Asks a session for the runners that its stages need.

Args:
  session: `Session._session` of a `tf.compat.v1.Session`. The session must
    already have the whole graph.
  manual_stages: The serialized `PrefetchRunnerOptions` of the graph's manual
    stages.

Returns:
  A list of serialized `PrefetchRunnerOptions`: of the manual stages and of the
  stages that SmartStage made.

Raises:
  ValueError: If `session` is closed, or an entry of `manual_stages` is not such
    a message.
  tf.errors.OpError: The session's error, if it cannot run.
)doc");

  m.def("fetch_counts", &FetchCountsInSession, py::arg("session"),
        py::arg("tensors"),
        R"doc(Runs ops of stages that yield a number, one after the other.

Args:
  session: `Session._session` of a `tf.compat.v1.Session`.
  tensors: The outputs of these ops, int64 scalars.

Returns:
  The number that each has yielded.

Raises:
  ValueError: If `session` is closed.
  tf.errors.OpError: The session's error, if it cannot run.
)doc");

  m.def("stages_before", &StagesBeforeInSession, py::arg("session"),
        py::arg("stages"),
        R"doc(Finds out which manual stages take the records of which others.

Args:
  session: `Session._session` of a `tf.compat.v1.Session`.
  stages: For each stage, the names of its Puts and of the ops whose values it
    feeds.

Returns:
  For each stage, the indices of the stages directly before it.

Raises:
  ValueError: If `session` is closed.
  tf.errors.OpError: If a session cannot run the graph's stages.
)doc");

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

  py::class_<PyPrefetchRunner>(
      m, "PrefetchRunner",
      "Runs a region of a graph ahead of the training step.")
      .def(py::init<TF_Session*, const std::string&>(), py::arg("session"),
           py::arg("options"),
           R"doc(Creates a runner without starting it.

Args:
  session: `Session._session` of a `tf.compat.v1.Session`. The session must
    already have the nodes that the options name.
  options: A serialized `PrefetchRunnerOptions` message, as bytes.

Raises:
  ValueError: If `session` is closed, or `options` is not such a message.
  tf.errors.InvalidArgumentError: If a required option is missing.
)doc")
      .def("start", &PyPrefetchRunner::Start,
           R"doc(Opens the buffer and starts the producers. Works only once.

Raises:
  tf.errors.FailedPreconditionError: If called a second time.
  tf.errors.CancelledError: If the runner is stopped or the session is closed.
  tf.errors.OpError: The session's error, if its graph lacks a node that the
    options name.
)doc")
      .def("stop", &PyPrefetchRunner::Stop,
           R"doc(Cancels the buffer and joins the producers.

May be called at any time, from any thread, and more than once. Waits only a few
seconds for a producer that waits for slow input; that producer ends when the
session closes.
)doc")
      .def("stats", &PyPrefetchRunner::GetStats,
           R"doc(Returns the runner's counters.

Returns:
  A dict with `name` (str, the name of the stage), `records` (int, the staged
  runs that succeeded), `ignored` (int, the staged runs that failed with an
  ignored exception), `running` (bool, whether a producer may still add records),
  `threads` (int, the producers that may), `timed_records` and `record_micros`
  (int, how many runs were timed, and how long they took), `tunes_threads` and
  `threads_settled` (bool, whether the runner chooses how many threads work, and
  has settled on it).
)doc")
      .def("buffer_stats", &PyPrefetchRunner::ReadBuffer,
           R"doc(Reads the statistics of the stage's buffer.

Returns:
  A dict with the fields of the message BufferStats; `error_message` is bytes.

Raises:
  tf.errors.FailedPreconditionError: If the runner is not running.
  tf.errors.UnimplementedError: If the graph was written by a version without
    statistics.
  tf.errors.OpError: The session's error.
)doc");

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

  AddFunctions(&m);
}

}  // namespace staging
}  // namespace tensorflow
