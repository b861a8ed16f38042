// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/lent_tensor.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {
namespace staging {
namespace {

// The memory of a tensor while it is lent.
class Loan : public ::tensorflow::TensorBuffer {
 public:
  Loan(Tensor tensor, const KernelStream& borrower,
       absl::AnyInvocable<void(Tensor) &&> give_back)
      : ::tensorflow::TensorBuffer(DMAHelper::base(&tensor)),
        is_only_tensor_(tensor.RefCountIsOne()),
        tensor_(std::move(tensor)),
        borrower_(borrower),
        give_back_(std::move(give_back)) {}

  ~Loan() override {
    borrower_.ThenCall([tensor = std::move(tensor_),
                        give_back = std::move(give_back_)]() mutable {
      std::move(give_back)(std::move(tensor));
    });
  }

  size_t size() const override { return tensor_.TotalBytes(); }
  ::tensorflow::TensorBuffer* root_buffer() override { return this; }
  // Whether kernels may reuse the memory for an output.
  bool OwnsMemory() const override { return is_only_tensor_; }
  void FillAllocationDescription(AllocationDescription* proto) const override {
    proto->set_requested_bytes(size());
    proto->set_allocated_bytes(size());
  }

 private:
  const bool is_only_tensor_;
  Tensor tensor_;
  const KernelStream borrower_;
  absl::AnyInvocable<void(Tensor) &&> give_back_;
};

}  // namespace

Tensor LendTensor(Tensor tensor, const KernelStream& borrower,
                  absl::AnyInvocable<void(Tensor) &&> give_back) {
  const DataType dtype = tensor.dtype();
  const TensorShape shape = tensor.shape();
  const core::RefCountPtr<Loan> loan(
      new Loan(std::move(tensor), borrower, std::move(give_back)));
  return Tensor(dtype, shape, loan.get());
}

}  // namespace staging
}  // namespace tensorflow
