// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/report/run_once.h"

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/dataset.h"
#include "tensorflow_staging/core/graph/facts/changing_resources.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {
namespace {

bool AsksWhetherInitialized(const Node& node) {
  return node.type_string() == "VarIsInitializedOp" ||
         node.type_string() == "IsVariableInitialized";
}

std::vector<const Node*> Inputs(const Node& node) {
  std::vector<const Node*> inputs;
  for (const Edge* edge : node.in_edges()) {
    if (edge->src()->IsOp()) inputs.push_back(edge->src());
  }
  return inputs;
}

std::vector<const Node*> Users(const Node& node) {
  std::vector<const Node*> users;
  for (const Edge* edge : node.out_edges()) {
    if (edge->dst()->IsOp()) users.push_back(edge->dst());
  }
  return users;
}

class RunOnceFinder {
 public:
  explicit RunOnceFinder(const Graph& graph)
      : graph_(graph),
        resources_(graph),
        changing_(graph, resources_, NodeFilter()),
        effects_(graph.flib_def()),
        roles_(graph),
        handles_(graph.num_node_ids(), false),
        once_(graph.num_node_ids(), false) {}

  std::vector<bool> Run() {
    FindRoots();
    // In this order: what only initialisers use cannot be what follows them.
    AddWhatFollows();
    AddWhatLeadsToThemAlone();
    for (size_t i = 0; i < once_.size(); ++i) {
      once_[i] = once_[i] || handles_[i];
    }
    return std::move(once_);
  }

 private:
  void FindRoots() {
    for (const Node* node : graph_.op_nodes()) {
      const RoleAndReason found = roles_.Find(*node);
      if (found.role == NodeRole::kHandle) {
        // The string of a handle may arrive with every step.
        handles_[node->id()] = !IsIteratorFromStringHandle(*node);
        AddInitializersOf(*node);
      } else if (found.reason == StepReason::kVariable ||
                 found.reason == StepReason::kTable) {
        AddInitializersOf(*node);
      } else if (IsIteratorInitializer(*node) ||
                 IsIteratorToStringHandle(*node) ||
                 AsksWhetherInitialized(*node) || IsUnusedDataset(*node)) {
        Add(*node);
      }
    }
  }

  static bool IsUnusedDataset(const Node& node) {
    return data::DatasetOpKernel::IsDatasetOp(node.op_def()) &&
           Users(node).empty();
  }

  void AddInitializersOf(const Node& handle) {
    if (resources_.OwnerOf(handle) != &handle) return;
    for (const ResourceUse& use : resources_.UsesOf(handle)) {
      if (effects_.Find(use) == ResourceEffect::kInitialize) Add(*use.user);
    }
    const Node* initializer = changing_.InitializerOf(handle);
    if (initializer != nullptr) Add(*initializer);
  }

  void Add(const Node& node) {
    if (once_[node.id()]) return;
    once_[node.id()] = true;
    found_.push_back(&node);
  }

  // Adds the nodes that use only nodes found so far, and constants.
  void AddWhatFollows() {
    for (size_t i = 0; i < found_.size(); ++i) {
      for (const Node* user : Users(*found_[i])) {
        const std::vector<const Node*> inputs = Inputs(*user);
        if (!HasOwnRole(*user) &&
            absl::c_all_of(inputs, [this](const Node* input) {
              return once_[input->id()] || input->IsConstant();
            })) {
          Add(*user);
        }
      }
    }
  }

  // Adds the nodes that only nodes found so far use.
  void AddWhatLeadsToThemAlone() {
    for (size_t i = 0; i < found_.size(); ++i) {
      for (const Node* input : Inputs(*found_[i])) {
        const std::vector<const Node*> users = Users(*input);
        if (!HoldsState(*input) && !IsSourceOp(*input) &&
            absl::c_all_of(users, [this](const Node* user) {
              return once_[user->id()];
            })) {
          Add(*input);
        }
      }
    }
  }

  // Returns whether `node` is a variable, or a table that the step changes.
  bool HoldsState(const Node& node) {
    const StepReason reason = roles_.Find(node).reason;
    return reason == StepReason::kVariable || reason == StepReason::kTable;
  }

  bool HasOwnRole(const Node& node) {
    return roles_.Find(node).role != NodeRole::kPure &&
           roles_.Find(node).role != NodeRole::kOncePerRecord;
  }

  const Graph& graph_;
  const Resources resources_;
  ChangingResources changing_;
  ResourceEffects effects_;
  NodeRoles roles_;
  // By node id. Steps use handles, so what uses a handle need not run once.
  std::vector<bool> handles_;
  std::vector<bool> once_;
  std::vector<const Node*> found_;  // The nodes in `once_`.
};

}  // namespace

std::vector<bool> FindNodesThatRunOnce(const Graph& graph) {
  return RunOnceFinder(graph).Run();
}

}  // namespace staging
}  // namespace tensorflow
