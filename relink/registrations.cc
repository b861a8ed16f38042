// SPDX-License-Identifier: Apache-2.0
//
// Handles what a patched file of TensorFlow registers when it is loaded,
// because the stock copy of the file, in the base library, has already
// registered it. These definitions are local to the overlay (overlay.lds), so
// only the patched files call them.
//
// A build of TensorFlow's whole tree has one copy of each file and no overlay,
// and does not need this file.

#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/common_runtime/session_factory.h"
#include "tensorflow/tsl/lib/monitoring/collection_registry.h"

namespace tensorflow {

// Keeps the factory that the stock copy registered. Its virtual functions come
// from the overlay, because the overlay exports the factory's class.
void SessionFactory::Register(const string& runtime_type,
                              SessionFactory* factory) {
  delete factory;
}

// Replaces the stock copy's pass of the same name.
void OptimizationPassRegistry::Register(
    Grouping grouping, int phase, std::unique_ptr<GraphOptimizationPass> pass) {
  auto& passes = groups_[grouping][phase];
  for (std::unique_ptr<GraphOptimizationPass>& known : passes) {
    if (known->name() != pass->name()) continue;
    known = std::move(pass);
    return;
  }
  passes.push_back(std::move(pass));
}

}  // namespace tensorflow

namespace tsl {
namespace monitoring {

// Replaces the stock copy's metric of the same name, which nothing increments
// any more.
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
