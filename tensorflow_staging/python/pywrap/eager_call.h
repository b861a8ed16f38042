// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_EAGER_CALL_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_EAGER_CALL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pybind11/pybind11.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

// The context behind `context.context()._handle`.
TFE_Context* EagerContextOf(const pybind11::handle& capsule);

// The handle of an eager tensor, which the tensor owns. Raises TypeError for
// other objects.
TFE_TensorHandle* EagerHandleOf(const pybind11::handle& tensor);

// Sets `*tensor` to the tensor behind a handle, waiting for it if need be.
Status TensorOf(TFE_TensorHandle* handle, Tensor* tensor);

// A call of a function of the eager context, which threads without Python can
// make again and again.
class EagerCall {
 public:
  // `attrs` are those of the call, as strings. Keeps the inputs alive.
  EagerCall(TFE_Context* context, std::string function, std::string device,
            std::vector<std::pair<std::string, std::string>> attrs,
            const std::vector<TFE_TensorHandle*>& inputs);
  ~EagerCall();
  EagerCall(const EagerCall&) = delete;
  EagerCall& operator=(const EagerCall&) = delete;

  // Calls the function, which has one output, and drops that. Thread-safe.
  Status Run(CancellationManager* cancellation) const;

 private:
  TFE_Context* const context_;
  const std::string function_;
  const std::string device_;
  const std::vector<std::pair<std::string, std::string>> attrs_;
  std::vector<TFE_TensorHandle*> inputs_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_EAGER_CALL_H_
