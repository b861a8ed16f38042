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

// The tensors that one run of a session feeds and fetches, and the nodes that
// it runs, by name.
class RunRequest {
 public:
  using TensorNames = absl::flat_hash_set<TensorId, TensorId::Hasher>;

  // `options` must outlive this object.
  explicit RunRequest(const CallableOptions& options);

  RunRequest(const RunRequest&) = delete;
  RunRequest& operator=(const RunRequest&) = delete;

  // The fed tensors, including those that receive the value of another tensor
  // through a TensorConnection.
  const TensorNames& fed() const { return fed_; }
  // The tensors that the run has to compute because it fetches them without
  // feeding them, or connects them to others.
  const TensorNames& wanted() const { return wanted_; }
  // The names of the nodes to run.
  const absl::flat_hash_set<absl::string_view>& targets() const {
    return targets_;
  }

  // Returns the fed tensor of this name, or null if it is not fed.
  const TensorId* FindFed(absl::string_view node, int output) const;

  // Returns the nodes that the run names to compute them.
  std::vector<const Node*> WantedNodes(const Graph& graph) const;

  // Returns the nodes of which the run feeds a tensor.
  std::vector<const Node*> FedNodes(const Graph& graph) const;

  // Returns the nodes that the run needs, beginning with those that it names. A
  // node needs its control inputs, and its other inputs unless they are fed.
  std::vector<const Node*> NeededNodes(const Graph& graph) const;

 private:
  TensorNames fed_;
  TensorNames wanted_;
  absl::flat_hash_set<absl::string_view> targets_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_
