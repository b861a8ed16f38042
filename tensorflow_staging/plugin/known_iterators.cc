// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/plugin/known_iterators.h"

#include <memory>

#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/address_map.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {
namespace {

using Watch = core::WeakPtr<data::IteratorResource>;

AddressMap<Watch>* Watches() {
  static auto* const watches = new AddressMap<Watch>;
  return watches;
}

void ForgetAtEnd(data::IteratorResource* iterator) {
  if (Watches()->Find(iterator) != nullptr) return;
  Watches()->Add(iterator, std::make_shared<Watch>(iterator, [iterator] {
                   Source::Forget(iterator);
                   Watches()->Remove(iterator);
                 }));
}

}  // namespace

Status LookUpIterator(OpKernelContext* ctx, int input,
                      core::RefCountPtr<data::IteratorResource>* iterator) {
  TF_RETURN_IF_ERROR(
      LookupResource(ctx, HandleFromInput(ctx, input), iterator));
  ForgetAtEnd(iterator->get());
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
