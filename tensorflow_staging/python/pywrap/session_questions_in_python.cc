// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/session_questions_in_python.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pybind11/stl.h"
#include "tensorflow/c/c_api_internal.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stages_before.h"
#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/python/pywrap/parsed_message.h"
#include "tensorflow_staging/python/pywrap/raise_if_error.h"
#include "tensorflow_staging/python/pywrap/underlying_session.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// Returns the runners and the notes of a session.
py::tuple RunnersOfSession(py::handle session,
                           const std::vector<py::bytes>& manual_stages) {
  std::vector<PrefetchRunnerOptions> known;
  for (const py::bytes& options : manual_stages) {
    known.push_back(Parse<PrefetchRunnerOptions>(options, "manual_stages"));
  }
  std::vector<PrefetchRunnerOptions> runners;
  std::vector<StageNote> notes;
  WithSession(session, [&](const std::shared_ptr<Session>& underlying) {
    return FindRunnersOfSession(underlying.get(), known, &runners, &notes);
  });
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
    py::handle session, const std::vector<std::string>& tensors) {
  std::vector<int64_t> counts;
  WithSession(session, [&](const std::shared_ptr<Session>& underlying) {
    return FetchCounts(underlying.get(), tensors, &counts);
  });
  return counts;
}

std::vector<std::vector<int>> StagesBeforeInSession(
    py::handle py_session,
    const std::vector<std::vector<std::string>>& stages) {
  TF_Session* const session = SessionOfPython(py_session);
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

}  // namespace

void AddSessionQuestions(py::module_* module) {
  module->def("runners_of_session", &RunnersOfSession, py::arg("session"),
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

  module->def("fetch_counts", &FetchCountsInSession, py::arg("session"),
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

  module->def(
      "stages_before", &StagesBeforeInSession, py::arg("session"),
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
}

}  // namespace staging
}  // namespace tensorflow
