// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_PASS_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow {
namespace staging {

// The graph pass that calls `run` with the graph of a session, or with that of a
// run of one. Graphs of functions have no stages.
template <Status (*run)(const GraphOptimizationPassOptions&, Graph*)>
class GraphPass : public GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) final {
    if (options.graph == nullptr || options.session_options == nullptr ||
        options.is_function_graph) {
      return OkStatus();
    }
    return run(options, options.graph->get());
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_PASS_H_
