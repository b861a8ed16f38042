// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// What one run of a session feeds, fetches and runs, by name.
class RunRequest {
 public:
  using TensorNames = absl::flat_hash_set<TensorId, TensorId::Hasher>;

  // `options` has to outlive this object.
  explicit RunRequest(const CallableOptions& options);

  RunRequest(const RunRequest&) = delete;
  RunRequest& operator=(const RunRequest&) = delete;

  // A tensor that another one is connected to counts as fed.
  const TensorNames& fed() const { return fed_; }
  const TensorNames& fetched() const { return fetched_; }

  // The fed tensor of this name; null if it is not fed.
  const TensorId* FindFed(absl::string_view node, int output) const;

  // The nodes that the run needs, targets first. A node needs its inputs,
  // unless they are fed, and its control inputs.
  std::vector<const Node*> NeededNodes(const Graph& graph) const;

 private:
  TensorNames fed_;
  TensorNames fetched_;
  absl::flat_hash_set<absl::string_view> wanted_nodes_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_
