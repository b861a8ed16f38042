// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/captured_resources.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/graph/facts/changing_resources.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {
namespace {

struct ById {
  bool operator()(const Node* a, const Node* b) const {
    return a->id() < b->id();
  }
};

// In the order of the graph.
using NodesById = std::set<const Node*, ById>;

// Returns the inputs that `dataset` keeps as long as it exists: components and
// arguments of its functions, which are lists. It reads all others, such as a
// batch size, when it is created.
std::vector<const Edge*> KeptInputs(const Node& dataset) {
  NameRangeMap ranges;
  std::vector<const Edge*> inputs;
  if (!NameRangesForNode(dataset.attrs(), dataset.op_def(), &ranges, nullptr)
           .ok() ||
      !dataset.input_edges(&inputs).ok()) {
    return {};
  }
  std::vector<const Edge*> kept;
  for (const OpDef::ArgDef& arg : dataset.op_def().input_arg()) {
    if (arg.type_list_attr().empty() && arg.number_attr().empty() &&
        dataset.type_string() != "SparseTensorSliceDataset") {
      continue;
    }
    const auto [begin, end] = ranges.at(arg.name());
    kept.insert(kept.end(), inputs.begin() + begin, inputs.begin() + end);
  }
  return kept;
}

// Returns the variables whose memory `dataset` may keep. An op such as Identity
// or Reshape yields the memory of a variable with references, and not a copy:
// the dataset then sees each update.
NodesById VariablesInMemoryOf(const Node& dataset) {
  NodesById variables;
  std::vector<const Edge*> found = KeptInputs(dataset);
  absl::flat_hash_set<const Node*> seen;
  while (!found.empty()) {
    const Edge* edge = found.back();
    found.pop_back();
    const Node* node = edge->src();
    const DataType type = node->output_type(edge->src_output());
    if (edge->IsControlEdge() || type == DT_RESOURCE || type == DT_VARIANT) {
      continue;
    }
    if (IsRefType(type)) {
      variables.insert(
          Resources::HandleOfInput(*edge->dst(), edge->dst_input()));
    } else if (seen.insert(node).second) {
      found.insert(found.end(), node->in_edges().begin(),
                   node->in_edges().end());
    }
  }
  return variables;
}

class ChangingData {
 public:
  ChangingData(const NodeFilter& counts, PartitionState* state)
      : state_(*state),
        resources_(state->resources()),
        changing_(state->graph(), resources_, counts) {}

  // Returns a handle op whose resource keeps the iterator of `owner` from
  // running ahead. Returns null if there is none.
  const Node* FindHandle(const Node& owner) {
    const NodesById datasets = DatasetsOf(owner);
    for (const Node* dataset : datasets) {
      for (const Node* handle : HandlesUsedBy(*dataset)) {
        if (IsShared(*resources_.OwnerOf(*handle), datasets)) return handle;
      }
    }
    return nullptr;
  }

 private:
  // Returns the ops that build the datasets of the iterator of `owner`.
  NodesById DatasetsOf(const Node& owner) const {
    NodesById datasets;
    std::vector<const Node*> found;
    if (owner.type_string() == "OneShotIterator") datasets.insert(&owner);
    for (const ResourceUse& use : resources_.UsesOf(owner)) {
      if (IsIteratorInitializer(*use.user)) found.push_back(use.user);
    }
    for (const Node* node : WithAncestors(found, [this](const Edge& edge) {
           return !edge.IsControlEdge() &&
                  edge.src()->output_type(edge.src_output()) == DT_VARIANT &&
                  state_.Counts(*edge.src());
         })) {
      if (!IsIteratorInitializer(*node)) datasets.insert(node);
    }
    return datasets;
  }

  const NodesById& HandlesUsedBy(const Node& dataset) {
    const auto [it, inserted] = handles_.try_emplace(&dataset);
    if (!inserted) return it->second;
    NodesById handles = VariablesInMemoryOf(dataset);
    for (int i = 0; i < dataset.num_inputs(); ++i) {
      if (dataset.input_type(i) != DT_RESOURCE) continue;
      const Node* handle = Resources::HandleOfInput(dataset, i);
      if (handle != nullptr) handles.insert(handle);
    }
    for (const Node* owner : resources_.NamedBy(dataset)) {
      handles.insert(owner);
    }
    return it->second = std::move(handles);
  }

  // Returns whether other nodes than `datasets` may change the resource, or use
  // it while `datasets` may change it.
  bool IsShared(const Node& owner, const NodesById& datasets) {
    const auto is_dataset = [&datasets](const Node* node) {
      return datasets.count(node) > 0;
    };
    const std::vector<const Node*>& changers = changing_.ChangersOf(owner);
    if (changers.empty()) return false;
    const std::vector<const Node*> users = changing_.UsersOf(owner);
    return !absl::c_all_of(users, is_dataset);
  }

  const PartitionState& state_;
  const Resources& resources_;
  ChangingResources changing_;
  std::map<const Node*, NodesById> handles_;  // By dataset.
};

}  // namespace

void MoveIteratorsOfChangingData(const NodeFilter& counts,
                                 PartitionState* state) {
  ChangingData changing(counts, state);
  std::map<const Node*, const Node*> handle_of;  // By iterator.
  for (const Node* source : state->sources()) {
    if (IsBufferTake(*source)) continue;
    const Node* iterator = state->resources().IteratorOf(*source);
    const auto [it, inserted] = handle_of.try_emplace(iterator, nullptr);
    if (inserted) it->second = changing.FindHandle(*iterator);
    if (it->second != nullptr) {
      state->MoveToStep(*source, {StepReason::kChangingData, it->second});
    }
  }
}

}  // namespace staging
}  // namespace tensorflow
