// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Copies records between host memory and the memory of the accelerator that
// keeps them in a buffer.
//
// No thread waits for the copies. A copy to the host begins after all that is
// queued on the stream that computes the records, and a copy to the accelerator
// after all that may still use the memory there.
//
// Thread-safe.
class RecordCopies {
 public:
  using Records = std::vector<std::vector<Tensor>>;
  using Done = absl::AnyInvocable<void(const Status&, Records)>;

  // The tensors `on_device` of each record are in the memory of `device`.
  // `names` has the names of a record's tensors, for errors.
  RecordCopies(std::string device, std::vector<std::string> names,
               std::vector<int> on_device);

  // Call `done` with copies of `records`, of which each must have one tensor
  // for each name, or with the error of an allocator or of a copy. Tensors that
  // are in host memory on both sides are not copied. `ctx` must live until
  // then. `done` may run in a thread that calls back after events, and must not
  // block.
  void ToHost(OpKernelContext* ctx, Records records, Done done) const;
  void ToDevice(OpKernelContext* ctx, Records records, Done done) const;

 private:
  class Batch;
  // The two ends of the copies.
  struct Ends {
    Device* host;
    Device* device;
    DeviceContext* context;
  };

  Status FindEnds(OpKernelContext* ctx, Ends* ends) const;
  void Start(bool to_host, OpKernelContext* ctx, Records records,
             Done done) const;
  // Starts the copy of tensor `i` of a record.
  Status StartCopy(bool to_host, const Ends& ends, int i, const Tensor& from,
                   Tensor* to, const std::shared_ptr<Batch>& batch) const;
  std::string NameOf(int i) const;
  // Adds to an error which tensor it concerns.
  Status Named(const Status& status, int i) const;

  const std::string device_;
  const std::vector<std::string> names_;
  // The indices of the tensors in the memory of device_.
  const std::vector<int> on_device_;

  TF_DISALLOW_COPY_AND_ASSIGN(RecordCopies);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_
