// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_LENT_TENSOR_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_LENT_TENSOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/records/kernel_stream.h"

namespace tensorflow {
namespace staging {

// Returns `tensor`, in the same memory, for kernels on the stream `borrower`.
// `tensor` must have elements, and must have been computed, unless `content` is
// not null: then a copy fills its memory until that event (AwaitContent).
//
// An allocator of a GPU gives memory out again as soon as the host has freed
// it, although queued kernels may still use it. That is right only for kernels
// on the stream of the allocator's own device. So the loan ends after an event:
// when the last tensor that shares the memory of the result has been destroyed,
// and the GPU has done all that was queued on the borrower's stream by then,
// this calls `give_back` with `tensor`. That happens in a thread that calls
// back after events, so `give_back` must not block.
//
// Kernels may write their outputs into the lent memory if `tensor` is the only
// tensor that uses it.
//
// `place` names the device to which `content` copies (PlaceOf).
Tensor LendTensor(Tensor tensor, const KernelStream& borrower,
                  absl::AnyInvocable<void(Tensor) &&> give_back,
                  std::shared_ptr<CopyEvent> content = nullptr,
                  std::string place = "");

// Lets the kernels that are queued on `device` from now on wait until the
// memory of lent tensors among `record` has been filled. Whoever gets a record
// from a buffer must call this before it uses the record's tensors on a GPU.
Status AwaitContent(const std::vector<Tensor>& record,
                    const DeviceBase& device);

// Returns the device in whose memory a tensor of a record is, such as GPU:0; the
// host is "". `computed_on` returns the device that has computed what is no copy.
std::string PlaceOf(const Tensor& tensor,
                    absl::FunctionRef<std::string()> computed_on);

// Whether `tensor` is in memory that is lent to kernels on `borrower`.
bool IsLentTo(const Tensor& tensor, const KernelStream& borrower);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_LENT_TENSOR_H_
