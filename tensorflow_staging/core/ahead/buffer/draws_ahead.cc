// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/buffer/draws_ahead.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow_staging/core/sources/ledger.h"
#include "tensorflow_staging/core/sources/roll_back.h"

namespace tensorflow {
namespace staging {

void DrawsAhead::DrawFrom(std::vector<core::RefCountPtr<Var>> copies) {
  mutex_lock l(mu_);
  copies_ = std::move(copies);
}

size_t DrawsAhead::size() const {
  mutex_lock l(mu_);
  return copies_.size();
}

void DrawsAhead::Begin(const std::shared_ptr<ReadSet>& reads) {
  mutex_lock l(mu_);
  if (copies_.empty()) return;
  const std::shared_ptr<const Outcome> back = ledger_->ForgetBack();
  std::optional<std::vector<Tensor>> states =
      std::exchange(next_, std::nullopt);
  if (!states.has_value() && back != nullptr) states = back->element;
  auto begun = std::make_shared<Outcome>();
  for (size_t i = 0; i < copies_.size(); ++i) {
    mutex_lock of_copy(*copies_[i]->mu());
    Tensor* const copy = copies_[i]->tensor();
    if (states.has_value() && i < states->size() &&
        (*states)[i].dtype() == copy->dtype()) {
      *copy = tensor::DeepCopy((*states)[i]);
    }
    begun->element.push_back(tensor::DeepCopy(*copy));
  }
  std::shared_ptr<const Outcome> entered = std::move(begun);
  ledger_->Enter(ledger_->version(), reads, &entered);
}

void DrawsAhead::GoOnFrom(const std::vector<Tensor>& states) {
  {
    mutex_lock l(mu_);
    next_ = states;
  }
  RollBack().GiveBackAll(ledger_);
}

}  // namespace staging
}  // namespace tensorflow
