// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// Returns the node of a graph with this name, or null.
using NodeFinder = std::function<const Node*(const std::string& name)>;

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

  // Returns the names of the nodes that the run computes for its caller.
  std::set<std::string> WantedNames() const;

  // Returns the names of the nodes of which the run feeds a tensor.
  std::set<std::string> FedNames() const;

  // Returns both.
  std::set<std::string> Names() const;

  // Returns the finder of the nodes of `graph` that the run names. It does not
  // follow later changes of the graph.
  NodeFinder FindNodes(const Graph& graph) const;

  // Returns the nodes that the run needs, beginning with the wanted ones, by
  // name. A node needs its control inputs, and its other inputs unless they are
  // fed.
  std::vector<const Node*> NeededNodes(const NodeFinder& find) const;

 private:
  TensorNames fed_;
  TensorNames wanted_;
  absl::flat_hash_set<absl::string_view> targets_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_RUN_REQUEST_H_
