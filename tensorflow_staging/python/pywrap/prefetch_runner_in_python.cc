// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/prefetch_runner_in_python.h"

#include <memory>
#include <utility>

#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/python/pywrap/buffer_stats_to_python.h"
#include "tensorflow_staging/python/pywrap/parsed_message.h"
#include "tensorflow_staging/python/pywrap/raise_if_error.h"
#include "tensorflow_staging/python/pywrap/underlying_session.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// The Python class PrefetchRunner. Python calls every method with the GIL held.
class PyPrefetchRunner {
 public:
  PyPrefetchRunner(py::handle session, const py::bytes& serialized_options) {
    const auto options =
        Parse<PrefetchRunnerOptions>(serialized_options, "options");
    WithSession(session, [&](std::shared_ptr<Session> underlying) {
      return PrefetchRunner::Create(std::move(underlying), options, &runner_);
    });
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
    result["orders_threads"] = stats.orders_threads;
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

}  // namespace

void AddPrefetchRunner(py::module_* module) {
  py::class_<PyPrefetchRunner>(
      *module, "PrefetchRunner",
      "Runs a region of a graph ahead of the training step.")
      .def(py::init<py::handle, const py::bytes&>(), py::arg("session"),
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
  has settled on it), `orders_threads` (bool, whether several of them keep the
  order of one).
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
}

}  // namespace staging
}  // namespace tensorflow
