// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_KEPT_DEVICES_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_KEPT_DEVICES_H_

#include <string>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/threadpool_options.h"

namespace tensorflow {
namespace staging {

// An executor that gets an intra-op pool wraps the device in one that ends with
// the run. But an iterator with a shared_name keeps the device of the run that
// created it, and computes its dataset's functions there as long as it lives.

// Returns whether `graph` has the handle of an iterator with a shared_name.
inline bool KeepsDevice(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    // Handles have no inputs, and most nodes have some.
    if (node->num_inputs() != 0 || (node->type_string() != "IteratorV2" &&
                                    node->type_string() != "Iterator")) {
      continue;
    }
    std::string name;
    if (!TryGetNodeAttr(node->attrs(), "shared_name", &name) || !name.empty()) {
      return true;
    }
  }
  return false;
}

// Returns the intra-op pool of `options`, or null if one of `partitions`, the
// graphs of a run, keeps its device or is not known. The run then uses the
// intra-op threads of its devices.
template <typename Partitions>
thread::ThreadPoolInterface* IntraOpPoolOfRun(
    const thread::ThreadPoolOptions& options, const Partitions& partitions) {
  if (options.intra_op_threadpool == nullptr ||
      absl::c_any_of(partitions, [](const auto& partition) {
        return partition.graph == nullptr || KeepsDevice(*partition.graph);
      })) {
    return nullptr;
  }
  return options.intra_op_threadpool;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_KEPT_DEVICES_H_
