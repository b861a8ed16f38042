// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/other_iterator_readers.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {

OtherIteratorReaders::OtherIteratorReaders(const Graph& graph,
                                           const Resources& resources,
                                           const NodeFilter& counts)
    : resources_(resources), counts_(counts) {
  for (const Node* node : graph.op_nodes()) {
    std::vector<DataType> types;
    if (counts_.CountsOp(*node) && IsIteratorFromStringHandle(*node) &&
        TryGetNodeAttr(node->attrs(), "output_types", &types)) {
      from_string_[types].push_back(node);
    }
  }
}

const Node* OtherIteratorReaders::Find(const Node& owner) const {
  for (const ResourceUse& use : resources_.UsesOf(owner)) {
    if (!counts_.CountsOp(*use.user)) continue;
    if (MayReadIterator(*use.user)) return use.user;
    if (!IsIteratorToStringHandle(*use.user)) continue;
    if (const Node* user = FindUserOfString(*use.user)) return user;
    if (const Node* handle = FindHandleFromString(owner)) return handle;
  }
  return nullptr;
}

const Node* OtherIteratorReaders::FindUserOfString(
    const Node& to_string) const {
  for (const Edge* edge : to_string.out_edges()) {
    if (!edge->IsControlEdge() && counts_.CountsOp(*edge->dst())) {
      return edge->dst();
    }
  }
  return nullptr;
}

const Node* OtherIteratorReaders::FindHandleFromString(
    const Node& owner) const {
  std::vector<DataType> types;
  if (!TryGetNodeAttr(owner.attrs(), "output_types", &types)) return nullptr;
  const auto it = from_string_.find(types);
  if (it == from_string_.end()) return nullptr;
  for (const Node* handle : it->second) {
    if (handle != &owner) return handle;
  }
  return nullptr;
}

}  // namespace staging
}  // namespace tensorflow
