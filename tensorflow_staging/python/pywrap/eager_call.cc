// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/eager_call.h"

#include <dlfcn.h>
#include <link.h>

#include <memory>

#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/c/eager/tfe_cancellation_manager_internal.h"
#include "tensorflow/c/tf_status_helper.h"
#include "tensorflow/c/tf_tensor_internal.h"
#include "tensorflow/core/platform/errors.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// EagerTensor_Handle of TensorFlow's Python modules, which have no import library.
// The one that has it is loaded whenever there is an eager tensor; its name differs
// between versions, and only its path finds it.
using HandleOfTensor = TFE_TensorHandle* (*)(const PyObject*);

int FindIn(dl_phdr_info* loaded, size_t size, void* found) {
  void* const library = dlopen(loaded->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return 0;
  void* const function = dlsym(library, "_Z18EagerTensor_HandlePK7_object");
  dlclose(library);
  if (function == nullptr) return 0;
  *static_cast<void**>(found) = function;
  return 1;
}

HandleOfTensor FindHandleOfTensor() {
  void* found = nullptr;
  dl_iterate_phdr(FindIn, &found);
  return reinterpret_cast<HandleOfTensor>(found);
}

struct DeleteStatus {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
};
using StatusPtr = std::unique_ptr<TF_Status, DeleteStatus>;

struct DeleteOp {
  void operator()(TFE_Op* op) const { TFE_DeleteOp(op); }
};

}  // namespace

TFE_Context* EagerContextOf(const py::handle& capsule) {
  void* const context = PyCapsule_GetPointer(capsule.ptr(), nullptr);
  if (context == nullptr) throw py::error_already_set();
  return static_cast<TFE_Context*>(context);
}

TFE_TensorHandle* EagerHandleOf(const py::handle& tensor) {
  static const HandleOfTensor handle_of_tensor = FindHandleOfTensor();
  if (handle_of_tensor == nullptr) {
    throw py::type_error(
        "TensorFlow's Python module has no EagerTensor_Handle.");
  }
  const py::object type = py::module_::import("tensorflow.python.framework.ops")
                              .attr("EagerTensor");
  if (!py::isinstance(tensor, type)) {
    throw py::type_error("Not an eager tensor: " +
                         std::string(py::repr(tensor)));
  }
  return handle_of_tensor(tensor.ptr());
}

Status TensorOf(TFE_TensorHandle* handle, Tensor* tensor) {
  const StatusPtr status(TF_NewStatus());
  TF_Tensor* const resolved = TFE_TensorHandleResolve(handle, status.get());
  if (TF_GetCode(status.get()) != TF_OK) {
    return StatusFromTF_Status(status.get());
  }
  *tensor = TensorFromInterface(resolved->tensor);
  TF_DeleteTensor(resolved);
  return OkStatus();
}

EagerCall::EagerCall(TFE_Context* context, std::string function,
                     std::string device,
                     std::vector<std::pair<std::string, std::string>> attrs,
                     const std::vector<TFE_TensorHandle*>& inputs)
    : context_(context),
      function_(std::move(function)),
      device_(std::move(device)),
      attrs_(std::move(attrs)) {
  const StatusPtr status(TF_NewStatus());
  for (TFE_TensorHandle* input : inputs) {
    inputs_.push_back(TFE_TensorHandleCopySharingTensor(input, status.get()));
  }
}

EagerCall::~EagerCall() {
  for (TFE_TensorHandle* input : inputs_) {
    if (input != nullptr) TFE_DeleteTensorHandle(input);
  }
}

Status EagerCall::Run(CancellationManager* cancellation) const {
  const StatusPtr status(TF_NewStatus());
  const std::unique_ptr<TFE_Op, DeleteOp> op(
      TFE_NewOp(context_, function_.c_str(), status.get()));
  const auto failed = [&status] { return TF_GetCode(status.get()) != TF_OK; };
  if (failed()) return StatusFromTF_Status(status.get());
  if (!device_.empty()) {
    TFE_OpSetDevice(op.get(), device_.c_str(), status.get());
    if (failed()) return StatusFromTF_Status(status.get());
  }
  for (const auto& [name, value] : attrs_) {
    TFE_OpSetAttrString(op.get(), name.c_str(), value.data(), value.size());
  }
  for (TFE_TensorHandle* input : inputs_) {
    if (input == nullptr) {
      return errors::Internal("An input of '", function_, "' has no copy.");
    }
    TFE_OpAddInput(op.get(), input, status.get());
    if (failed()) return StatusFromTF_Status(status.get());
  }
  TFE_OpSetCancellationManager(op.get(), wrap(cancellation), status.get());
  if (failed()) return StatusFromTF_Status(status.get());
  TFE_TensorHandle* output = nullptr;
  int num_outputs = 1;
  TFE_Execute(op.get(), &output, &num_outputs, status.get());
  if (output != nullptr) TFE_DeleteTensorHandle(output);
  return StatusFromTF_Status(status.get());
}

}  // namespace staging
}  // namespace tensorflow
