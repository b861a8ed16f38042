// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_RECORD_LOAN_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_RECORD_LOAN_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/records/kernel_stream.h"

namespace tensorflow {
namespace staging {

// Hands records from the stream of a GPU that has computed them to the stream
// of a Take, without a copy. The Put waits for its stream, so that the record
// is there for all streams. The Take borrows the memory, so that the allocator
// of the Put's stream does not give it out again before the Take's stream has
// used it.
//
// Thread-safe.
class RecordLoan {
 public:
  // Sets `*loan` to what the Take's attribute kBorrowsFromAttr says; null if
  // there is none. Returns INVALID_ARGUMENT if the Take cannot borrow.
  static Status Read(const OpKernelConstruction& ctx,
                     std::unique_ptr<RecordLoan>* loan);

  // Replaces the tensors of `record` that are in the memory of a GPU by lent
  // ones. Returns INVALID_ARGUMENT, and lends nothing, if the Take is not on
  // that GPU.
  Status Lend(OpKernelContext* ctx, std::vector<Tensor>* record);

 private:
  explicit RecordLoan(std::string lender) : lender_(std::move(lender)) {}

  Status FindBorrower(OpKernelContext* ctx);

  const std::string lender_;
  absl::once_flag once_;
  Status status_;
  KernelStream borrower_;

  TF_DISALLOW_COPY_AND_ASSIGN(RecordLoan);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_LOAN_H_
