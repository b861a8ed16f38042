// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_OP_KERNEL_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_OP_KERNEL_H_

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/testing/scheduled/cancellation.h"

namespace tensorflow {
namespace scheduled {

// What the engine asks of the op that reads an iterator.
class OpKernel {
 public:
  OpKernel(std::string name, std::string type)
      : name_(std::move(name)), type_(std::move(type)) {}

  const std::string& name() const { return name_; }
  const std::string& type_string() const { return type_; }

 private:
  const std::string name_;
  const std::string type_;
};

class OpKernelContext {
 public:
  OpKernelContext(const OpKernel& op, CancellationManager* cancellation)
      : op_(op), cancellation_(cancellation) {}

  const OpKernel& op_kernel() const { return op_; }
  CancellationManager* cancellation_manager() const { return cancellation_; }
  ScopedStepContainer* step_container() const { return nullptr; }
  ResourceMgr* resource_manager() const { return nullptr; }

 private:
  const OpKernel& op_;
  CancellationManager* const cancellation_;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_OP_KERNEL_H_
