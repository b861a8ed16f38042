// SPDX-License-Identifier: Apache-2.0
//
// What a patched file of TensorFlow registers when it is loaded, the stock copy
// of that file in the base library has registered already. These definitions
// are local to the overlay (overlay.lds), so they serve the patched files
// alone.
//
// In a whole-tree build there is one copy of each file and no overlay, and this
// file is not part of it.

#include <memory>

#include "tensorflow/core/common_runtime/session_factory.h"
#include "tensorflow/tsl/lib/monitoring/collection_registry.h"

namespace tensorflow {

// The registered factory stays: its virtual functions are the overlay's,
// because the overlay exports the factory's class.
void SessionFactory::Register(const string& runtime_type,
                              SessionFactory* factory) {
  delete factory;
}

}  // namespace tensorflow

namespace tsl {
namespace monitoring {

// Nothing increments the stock copy's metric any more: the patched copy's takes
// its place under the same name.
std::unique_ptr<CollectionRegistry::RegistrationHandle>
CollectionRegistry::Register(const AbstractMetricDef* const metric_def,
                             const CollectionFunction& collection_function) {
  mutex_lock l(mu_);
  registry_.erase(metric_def->name());
  registry_.insert({metric_def->name(),
                    {metric_def, collection_function,
                     /*registration_time_millis=*/env_->NowMicros() / 1000}});
  return std::unique_ptr<RegistrationHandle>(
      new RegistrationHandle(this, metric_def));
}

}  // namespace monitoring
}  // namespace tsl
