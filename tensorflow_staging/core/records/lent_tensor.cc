// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/lent_tensor.h"

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
       absl::AnyInvocable<void(Tensor) &&> give_back,
       std::shared_ptr<CopyEvent> content, std::string place)
      : ::tensorflow::TensorBuffer(DMAHelper::base(&tensor)),
        is_only_tensor_(tensor.RefCountIsOne()),
        tensor_(std::move(tensor)),
        borrower_(borrower),
        give_back_(std::move(give_back)),
        content_(std::move(content)),
        place_(std::move(place)) {}

  ~Loan() override {
    borrower_.ThenCall([tensor = std::move(tensor_),
                        give_back = std::move(give_back_)]() mutable {
      std::move(give_back)(std::move(tensor));
    });
  }

  // Null if the memory was filled when it was lent.
  CopyEvent* content() const { return content_.get(); }
  const KernelStream& borrower() const { return borrower_; }
  const std::string& place() const { return place_; }

  size_t size() const override { return tensor_.TotalBytes(); }
  ::tensorflow::TensorBuffer* root_buffer() override { return this; }
  // Whether kernels may reuse the memory for an output.
  bool OwnsMemory() const override { return is_only_tensor_; }
  AllocatorMemoryType GetMemoryType() const override {
    return tensor_.GetMemoryType();
  }
  void FillAllocationDescription(AllocationDescription* proto) const override {
    proto->set_requested_bytes(size());
    proto->set_allocated_bytes(size());
  }

 private:
  const bool is_only_tensor_;
  Tensor tensor_;
  const KernelStream borrower_;
  absl::AnyInvocable<void(Tensor) &&> give_back_;
  const std::shared_ptr<CopyEvent> content_;
  const std::string place_;
};

// Returns the memory that `tensor` is in a part of; null if it has no elements.
::tensorflow::TensorBuffer* Root(const Tensor& tensor) {
  ::tensorflow::TensorBuffer* buffer =
      const_cast<::tensorflow::TensorBuffer*>(DMAHelper::buffer(&tensor));
  return buffer == nullptr ? nullptr : buffer->root_buffer();
}

}  // namespace

Tensor LendTensor(Tensor tensor, const KernelStream& borrower,
                  absl::AnyInvocable<void(Tensor) &&> give_back,
                  std::shared_ptr<CopyEvent> content, std::string place) {
  const DataType dtype = tensor.dtype();
  const TensorShape shape = tensor.shape();
  const core::RefCountPtr<Loan> loan(
      new Loan(std::move(tensor), borrower, std::move(give_back),
               std::move(content), std::move(place)));
  return Tensor(dtype, shape, loan.get());
}

Status AwaitContent(const std::vector<Tensor>& record,
                    const DeviceBase& device) {
  // The lent tensors of a record are usually parts of one block.
  const Loan* last = nullptr;
  for (const Tensor& tensor : record) {
    const auto* loan = dynamic_cast<const Loan*>(Root(tensor));
    if (loan == nullptr || loan == last || loan->content() == nullptr) continue;
    last = loan;
    KernelStream stream;
    TF_RETURN_IF_ERROR(KernelStream::Of(device, &stream));
    TF_RETURN_IF_ERROR(loan->content()->AwaitOn(stream));
  }
  return OkStatus();
}

std::string PlaceOf(const Tensor& tensor,
                    absl::FunctionRef<std::string()> computed_on) {
  const ::tensorflow::TensorBuffer* const root = Root(tensor);
  if (root == nullptr ||
      root->GetMemoryType() != AllocatorMemoryType::kDevice) {
    return "";
  }
  const auto* loan = dynamic_cast<const Loan*>(root);
  return loan != nullptr && !loan->place().empty() ? loan->place()
                                                   : computed_on();
}

bool IsLentTo(const Tensor& tensor, const KernelStream& borrower) {
  const auto* loan = dynamic_cast<const Loan*>(Root(tensor));
  return loan != nullptr && loan->borrower().stream() == borrower.stream();
}

}  // namespace staging
}  // namespace tensorflow
