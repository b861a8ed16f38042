// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/ahead_in_python.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pybind11/stl.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/ahead/division/step_division.h"
#include "tensorflow_staging/core/ahead/producers/function_runner.h"
#include "tensorflow_staging/python/pywrap/buffer_stats_to_python.h"
#include "tensorflow_staging/python/pywrap/eager_call.h"
#include "tensorflow_staging/python/pywrap/raise_if_error.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// An input of a step: its kind and its name.
using PyStepInput = std::pair<std::string, std::string>;

InputKind KindOf(const std::string& kind) {
  if (kind == "iterator") return InputKind::kIterator;
  if (kind == "table") return InputKind::kTable;
  if (kind == "constant") return InputKind::kConstant;
  if (kind == "variable") return InputKind::kVariable;
  if (kind == "shared variable") return InputKind::kShared;
  if (kind == "other") return InputKind::kOther;
  throw py::value_error("'" + kind +
                        "' is no kind of input: iterator, table, constant, "
                        "variable, shared variable or other.");
}

py::dict Divide(const py::bytes& serialized_library, const std::string& name,
                const std::vector<PyStepInput>& py_inputs,
                const std::string& prefix) {
  FunctionDefLibrary proto;
  if (!proto.ParseFromString(std::string(serialized_library))) {
    throw py::value_error("library is not a serialized FunctionDefLibrary.");
  }
  std::vector<StepInput> inputs;
  for (const auto& [kind, input_name] : py_inputs) {
    inputs.push_back({KindOf(kind), input_name});
  }
  StepDivision division;
  Status status;
  {
    py::gil_scoped_release release;
    const FunctionLibraryDefinition library(OpRegistry::Global(), proto);
    const FunctionDef* step = library.Find(name);
    status = step == nullptr
                 ? errors::NotFound("The library has no function '", name, "'.")
                 : DivideStep(*step, library, inputs, prefix, &division);
  }
  RaiseIfError(status);
  py::dict result;
  result["why_not"] = division.why_not;
  result["ahead"] = division.ahead;
  result["ahead_inputs"] = division.ahead_inputs;
  result["rest"] = division.rest;
  result["buffer_input"] = division.buffer_input;
  py::list random_states;
  for (const RandomState& state : division.random_states) {
    random_states.append(
        py::make_tuple(state.input, DataTypeString(state.dtype)));
  }
  result["random_states"] = random_states;
  result["origins"] = division.origins;
  py::list functions;
  for (const FunctionDef& function : division.functions.function()) {
    functions.append(py::bytes(function.SerializeAsString()));
  }
  result["functions"] = functions;
  py::list record;
  for (const CarriedTensor& tensor : division.record) {
    record.append(py::make_tuple(tensor.name, DataTypeString(tensor.dtype),
                                 tensor.shape.DebugString()));
  }
  result["record"] = record;
  result["nodes_ahead"] = division.nodes_ahead;
  py::list outside;
  for (const NodeInRest& node : division.outside) {
    outside.append(py::make_tuple(node.name, node.op, node.why));
  }
  result["outside"] = outside;
  return result;
}

// Returns the variables of which a list has the handles.
std::vector<core::RefCountPtr<Var>> VariablesOf(const py::list& handles) {
  std::vector<core::RefCountPtr<Var>> variables;
  for (const py::handle& handle : handles) {
    Tensor tensor;
    RaiseIfError(TensorOf(EagerHandleOf(handle), &tensor));
    if (tensor.dtype() != DT_RESOURCE || tensor.NumElements() != 1) {
      throw py::type_error("a state is no handle of a variable.");
    }
    const StatusOr<Var*> found =
        tensor.flat<ResourceHandle>()(0).GetResource<Var>();
    RaiseIfError(found.status());
    variables.push_back(tsl::core::GetNewRef(*found));
  }
  return variables;
}

// Returns what a list of eager tensors holds.
std::vector<Tensor> TensorsOf(const py::list& tensors) {
  std::vector<Tensor> held;
  for (const py::handle& tensor : tensors) {
    RaiseIfError(TensorOf(EagerHandleOf(tensor), &held.emplace_back()));
  }
  return held;
}

// The Python class FunctionRunner. Python calls every method with the GIL held.
class PyFunctionRunner {
 public:
  PyFunctionRunner(const py::handle& context, const std::string& function,
                   const std::string& device,
                   std::vector<std::pair<std::string, py::bytes>> py_attrs,
                   const py::list& inputs, const py::handle& buffer,
                   int num_threads, std::optional<int64_t> limit,
                   std::shared_ptr<StageTuning> tuning,
                   const py::list& states) {
    std::vector<std::pair<std::string, std::string>> attrs;
    for (auto& [name, value] : py_attrs) attrs.emplace_back(name, value);
    std::vector<TFE_TensorHandle*> handles;
    for (const py::handle& input : inputs) {
      handles.push_back(EagerHandleOf(input));
    }
    handles.push_back(EagerHandleOf(buffer));
    Tensor tensor;
    RaiseIfError(TensorOf(handles.back(), &tensor));
    if (tensor.dtype() != DT_RESOURCE || tensor.NumElements() != 1) {
      throw py::type_error("buffer is no handle of a StepBuffer.");
    }
    const StatusOr<StepBuffer*> found =
        tensor.flat<ResourceHandle>()(0).GetResource<StepBuffer>();
    RaiseIfError(found.status());
    const auto call = std::make_shared<EagerCall>(
        EagerContextOf(context), function, device, std::move(attrs), handles);
    buffer_ = tsl::core::GetNewRef(*found);
    buffer_->DrawFrom(VariablesOf(states));
    buffer_->SetLimit(limit.value_or(StepBuffer::kNoLimit));
    run_region_ = [call](CancellationManager* cancellation) {
      return call->Run(cancellation);
    };
    py::gil_scoped_release release;
    reads_ahead_ = std::make_unique<FunctionRunner>(
        NewRefToBuffer(), num_threads, run_region_, std::move(tuning));
  }

  ~PyFunctionRunner() {
    // The last handle of an iterator may go here, and what ends with it may call
    // Python on another thread.
    py::gil_scoped_release release;
    on_demand_.reset();
    reads_ahead_.reset();
    run_region_ = nullptr;
    buffer_.reset();
  }

  void Continue() {
    FunctionRunner* const runner = current();
    py::gil_scoped_release release;
    runner->Continue();
  }

  void SetLimit(std::optional<int64_t> steps) {
    FunctionRunner* const runner = current();
    py::gil_scoped_release release;
    runner->SetLimit(steps.value_or(StepBuffer::kNoLimit));
  }

  std::optional<int64_t> Limit() const {
    const int64_t left = buffer_->left();
    return left == StepBuffer::kNoLimit ? std::nullopt
                                        : std::optional<int64_t>(left);
  }

  void Stop() {
    // Waits for threads that may need the GIL, in a tf.py_function.
    is_stopped_ = true;
    FunctionRunner* const runner = current();
    py::gil_scoped_release release;
    runner->Stop();
  }

  void StopReadingAhead() {
    if (is_stopped_ || std::exchange(is_on_demand_, true)) return;
    std::unique_ptr<FunctionRunner> on_demand;
    {
      py::gil_scoped_release release;
      reads_ahead_->StopForNext();
      buffer_->SetLimit(0);
      on_demand = std::make_unique<FunctionRunner>(
          NewRefToBuffer(), /*num_threads=*/1, run_region_);
    }
    on_demand_ = std::move(on_demand);
    if (is_stopped_) Stop();
  }

  int NumThreads() const { return current()->GetCounts().threads; }

  py::object Destinations() const {
    const auto found = buffer_->Destinations();
    if (!found) return py::none();
    py::list all;
    for (const DeviceShare& share : *found) {
      all.append(py::make_tuple(share.device, share.tensors));
    }
    return std::move(all);
  }

  py::dict BufferStats() const { return ToPython(buffer_->GetStats()); }

  std::pair<int64_t, int64_t> Times() const {
    const ProducerTeam::Counts counts = reads_ahead_->GetCounts();
    return {counts.timed_records, counts.record_micros};
  }

  void ExpectStates(const py::list& states) {
    buffer_->ExpectStates(TensorsOf(states));
  }

  void DrawOnFrom(const py::list& states) {
    const std::vector<Tensor> tensors = TensorsOf(states);
    py::gil_scoped_release release;
    buffer_->DrawOnFrom(tensors);
  }

  std::optional<int> FindChangedState(const py::list& states) {
    const std::vector<Tensor> tensors = TensorsOf(states);
    py::gil_scoped_release release;
    const int changed = buffer_->FindChangedState(tensors);
    return changed < 0 ? std::nullopt : std::optional<int>(changed);
  }

  int64_t ErrorsTaken() const { return buffer_->errors_taken(); }

 private:
  core::RefCountPtr<StepBuffer> NewRefToBuffer() const {
    StepBuffer* const buffer = buffer_.get();
    return tsl::core::GetNewRef(buffer);
  }

  FunctionRunner* current() const {
    return on_demand_ == nullptr ? reads_ahead_.get() : on_demand_.get();
  }

  core::RefCountPtr<StepBuffer> buffer_;
  FunctionRuns::RunRegion run_region_;
  std::unique_ptr<FunctionRunner> reads_ahead_;
  // What follows it after StopReadingAhead.
  std::unique_ptr<FunctionRunner> on_demand_;
  // Whether Stop and StopReadingAhead have been called. The GIL guards them.
  bool is_stopped_ = false;
  bool is_on_demand_ = false;
};

}  // namespace

void AddAhead(py::module_* module) {
  module->def(
      "divide_step", &Divide, py::arg("library"), py::arg("name"),
      py::arg("inputs"), py::arg("prefix"),
      R"doc(Divides a function into a part that runs ahead, and the rest.

Args:
  library: A serialized `FunctionDefLibrary`, as bytes: the function, and those
    that it calls.
  name: The name of the function.
  inputs: For each of its inputs, its kind (iterator, table, constant,
    variable, shared variable or other) and its name.
  prefix: What the names of the new functions begin with.

Returns:
  A dict with the fields of `StepDivision` (core/ahead/division/step_division.h) by
  name. `functions` are serialized, `random_states` is a list of (input,
  dtype), `record` one of (name, dtype, shape), and `outside` one of (name, op,
  why).

Raises:
  ValueError: If `library` is not such a message, or an input has another kind.
  tf.errors.OpError: If the functions are no valid graphs.
)doc");

  py::class_<StageTuning, std::shared_ptr<StageTuning>>(
      *module, "StageTuning",
      "What the stages of a step have found of their settings.")
      .def(py::init<bool>(), py::arg("tunes_threads"))
      .def("tunes_threads", &StageTuning::tunes_threads,
           "Returns whether it chooses how many threads a stage has.")
      .def("settled", &StageTuning::settled,
           "Returns whether the number of their threads has settled.");

  py::class_<PyFunctionRunner>(
      *module, "FunctionRunner",
      "Threads that call a function of the eager context, which puts records.")
      .def(py::init<const py::handle&, const std::string&, const std::string&,
                    std::vector<std::pair<std::string, py::bytes>>,
                    const py::list&, const py::handle&, int,
                    std::optional<int64_t>, std::shared_ptr<StageTuning>,
                    const py::list&>(),
           py::arg("context"), py::arg("function"), py::arg("device"),
           py::arg("attrs"), py::arg("inputs"), py::arg("buffer"),
           py::arg("num_threads"), py::arg("limit"), py::arg("tuning"),
           py::arg("states") = py::list(),
           R"doc(Opens the buffer and starts the threads.

Args:
  context: `context.context()._handle`.
  function: The name of the function.
  device: The device of the calls, or an empty string.
  attrs: The attributes of the calls, strings.
  inputs: The inputs of the function except the last, eager tensors.
  buffer: Its last input, the result of `StepBuffer`.
  num_threads: How many threads.
  limit: As for `set_limit`.
  tuning: A `StageTuning` with what other stages have found. If it tunes threads,
    it chooses their number instead.
  states: The handles of the copies of random states from which the function
    draws. The last tensors of a record are what they were after it.

Raises:
  TypeError: If an input is no eager tensor.
  tf.errors.InvalidArgumentError: If `buffer` is no handle of a buffer.
)doc")
      .def(
          "times", &PyFunctionRunner::Times,
          "Returns how many calls have put a record, but for the first of each "
          "thread, and how many microseconds they took in all.")
      .def("continue_after_error", &PyFunctionRunner::Continue,
           "Goes on with the next element, after the step has seen an error.")
      .def("set_limit", &PyFunctionRunner::SetLimit, py::arg("steps"),
           "Makes the records of so many more steps, and then only those that "
           "steps ask for; with None, any number.")
      .def("limit", &PyFunctionRunner::Limit,
           "Returns of how many more steps it makes the records without being "
           "asked; None for any number.")
      .def("stop", &PyFunctionRunner::Stop,
           R"doc(Cancels the calls and waits until the threads have left.

May be called at any time, from any thread, and more than once. Waits 1.5 seconds
at most for code that cannot be cancelled; its thread leaves after the call.
)doc")
      .def("stop_reading_ahead", &PyFunctionRunner::StopReadingAhead,
           "Gives back what no step has used, as stop does. But a step that "
           "waits for a record, or asks for one from here on, gets it.")
      .def("num_threads", &PyFunctionRunner::NumThreads,
           "Returns how many threads there are.")
      .def("expect_states", &PyFunctionRunner::ExpectStates, py::arg("states"),
           "Notes with which random states the next record was or will be "
           "drawn; with an empty list, that they are unknown.")
      .def("draw_on_from", &PyFunctionRunner::DrawOnFrom, py::arg("states"),
           "Lets the next record be drawn with these random states.")
      .def("find_changed_state", &PyFunctionRunner::FindChangedState,
           py::arg("states"),
           "Returns the index of the first of the program's random states that "
           "is not that with which the next record was or will be drawn, or "
           "None.")
      .def("errors_taken", &PyFunctionRunner::ErrorsTaken,
           "Returns how many errors of the function steps have taken.")
      .def(
          "destinations", &PyFunctionRunner::Destinations,
          "Returns what each GPU gets of a record, a list of (device, indices); "
          "None before a step has taken one.")
      .def("buffer_stats", &PyFunctionRunner::BufferStats,
           "Returns a dict with the fields of the message BufferStats.");
}

}  // namespace staging
}  // namespace tensorflow
