// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/resources.h"

#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns the input of `node` that its output `output` forwards, or -1 if the
// output is no handle of an input.
int ForwardedInput(const Node& node, int output) {
  if (!IsHandle(node.output_type(output))) return -1;
  if (node.type_string() == "IdentityN") return output;
  if (IsHandlePassThrough(node)) return 0;
  // Ops that update a variable yield the reference that they got.
  if (!IsRefType(node.output_type(output))) return -1;
  int input = -1;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!IsRefType(node.input_type(i))) continue;
    if (input >= 0) return -1;
    input = i;
  }
  return input;
}

// Returns the op that yields the handle or reference at an output of `node`.
const Node* HandleOf(const Node& node, int output) {
  const Node* found = &node;
  for (;;) {
    const int input = ForwardedInput(*found, output);
    const Edge* edge = nullptr;
    if (input < 0 || !found->input_edge(input, &edge).ok()) return found;
    found = edge->src();
    output = edge->src_output();
  }
}

bool MayBeOneDevice(const std::string& a, const std::string& b) {
  DeviceNameUtils::ParsedName first;
  DeviceNameUtils::ParsedName second;
  return !DeviceNameUtils::ParseFullName(a, &first) ||
         !DeviceNameUtils::ParseFullName(b, &second) ||
         DeviceNameUtils::AreCompatibleDevNames(first, second);
}

// Finds the resources that functions name themselves.
class NamedInFunctions {
 public:
  using Keys = std::set<ResourceKey>;

  // Looks only for `wanted` resources.
  NamedInFunctions(const FunctionLibraryDefinition& functions,
                   const Keys& wanted)
      : functions_(functions), wanted_(wanted) {
    any_ = AnyNodeOfFunctions(
        functions.ListFunctionNames(), functions,
        [this](const NodeDef& node) { return NamedBy(node).has_value(); });
  }

  // Returns whether any function names a resource.
  bool any() const { return any_; }

  // Returns what the functions that `node` calls name, directly or indirectly.
  Keys Find(const NodeDef& node) {
    Keys keys;
    for (const std::string& name : CalledFunctions(node, functions_)) {
      const Keys& found = Named(name);
      keys.insert(found.begin(), found.end());
    }
    return keys;
  }

 private:
  std::optional<ResourceKey> NamedBy(const NodeDef& node) const {
    auto key = SharedResourceOf(node);
    return key && wanted_.count(*key) > 0 ? std::move(key) : std::nullopt;
  }

  const Keys& Named(const std::string& name) {
    const auto [it, inserted] = named_.try_emplace(name);
    Keys& keys = it->second;
    if (!inserted) return keys;
    AnyNodeOfFunctions({name}, functions_, [this, &keys](const NodeDef& node) {
      if (auto key = NamedBy(node)) keys.insert(*std::move(key));
      return false;
    });
    return keys;
  }

  const FunctionLibraryDefinition& functions_;
  const Keys wanted_;
  bool any_ = false;
  // By name of the function.
  std::map<std::string, Keys> named_;
};

}  // namespace

bool IsHandle(DataType type) { return type == DT_RESOURCE || IsRefType(type); }

bool IsHandlePassThrough(const Node& node) {
  static const auto* const kOps = new absl::flat_hash_set<absl::string_view>(
      {"Enter", "Exit", "Identity", "IdentityN", "NextIteration", "RefEnter",
       "RefExit", "RefIdentity", "RefNextIteration", "RefSwitch", "Switch"});
  return kOps->contains(node.type_string());
}

Resources::Resources(const Graph& graph, const NodeFilter& counts) {
  HandlesByKey handles;
  for (const Node* node : graph.op_nodes()) {
    if (!counts.CountsOp(*node) || node->num_outputs() == 0 ||
        !IsHandle(node->output_type(0)) || ForwardedInput(*node, 0) >= 0) {
      continue;
    }
    if (auto key = SharedResourceOf(node->def())) {
      handles[*std::move(key)].push_back(node);
    }
  }
  ShareBetweenDevices(handles);
  AddUsesByInput(graph, counts);
  AddUsesByName(graph, counts, handles);
  for (auto& [owner, uses] : uses_) {
    absl::c_sort(uses, [](const ResourceUse& a, const ResourceUse& b) {
      return std::make_tuple(a.user->id(), a.input) <
             std::make_tuple(b.user->id(), b.input);
    });
  }
}

// Finds the owners of handle ops with equal keys. Each device has its own
// resources, but the device of a node may be unknown before placement: ops
// share a resource unless their devices differ.
void Resources::ShareBetweenDevices(const HandlesByKey& handles) {
  for (const auto& [key, nodes] : handles) {
    // The first node of each device, and the owner that it has so far.
    std::map<std::string, const Node*> owner_of_device;
    for (const Node* node : nodes) {
      owner_of_device.emplace(node->requested_device(), node);
    }
    // All pairs, because "may be one device" is not transitive. There are only
    // as many devices as the cluster has.
    for (auto a = owner_of_device.begin(); a != owner_of_device.end(); ++a) {
      for (auto b = std::next(a); b != owner_of_device.end(); ++b) {
        if (a->second == b->second || !MayBeOneDevice(a->first, b->first)) {
          continue;
        }
        const Node* first =
            a->second->id() < b->second->id() ? a->second : b->second;
        const Node* second = first == a->second ? b->second : a->second;
        for (auto& [device, owner] : owner_of_device) {
          if (owner == second) owner = first;
        }
      }
    }
    for (const Node* node : nodes) {
      const Node* owner = owner_of_device.at(node->requested_device());
      if (owner == node) continue;
      owner_[node] = owner;
      others_[owner].push_back(node);
    }
  }
}

void Resources::AddUsesByInput(const Graph& graph, const NodeFilter& counts) {
  for (const Node* node : graph.op_nodes()) {
    if (!counts.CountsOp(*node)) continue;
    for (const Edge* edge : node->out_edges()) {
      if (edge->IsControlEdge() ||
          !IsHandle(node->output_type(edge->src_output())) ||
          !counts.CountsOp(*edge->dst())) {
        continue;
      }
      const Node* handle = HandleOf(*node, edge->src_output());
      uses_[OwnerOf(*handle)].push_back({edge->dst(), edge->dst_input()});
    }
  }
}

void Resources::AddUsesByName(const Graph& graph, const NodeFilter& counts,
                              const HandlesByKey& handles) {
  if (handles.empty()) return;
  NamedInFunctions::Keys wanted;
  for (const auto& [key, nodes] : handles) wanted.insert(key);
  NamedInFunctions named(graph.flib_def(), wanted);
  if (!named.any()) return;
  for (const Node* node : graph.op_nodes()) {
    if (!counts.CountsOp(*node)) continue;
    for (const ResourceKey& key : named.Find(node->def())) {
      const auto it = handles.find(key);
      if (it == handles.end()) continue;
      std::set<const Node*> owners;
      for (const Node* handle : it->second) owners.insert(OwnerOf(*handle));
      for (const Node* owner : owners) {
        uses_[owner].push_back({node, ResourceUse::kByName});
        named_by_[node].push_back(owner);
      }
    }
  }
}

const Node* Resources::OwnerOf(const Node& handle) const {
  const auto it = owner_.find(&handle);
  return it == owner_.end() ? &handle : it->second;
}

const Node* Resources::HandleOfInput(const Node& user, int input) {
  const Edge* edge = nullptr;
  if (input < 0 || input >= user.num_inputs() ||
      !user.input_edge(input, &edge).ok() ||
      !IsHandle(edge->src()->output_type(edge->src_output()))) {
    return nullptr;
  }
  return HandleOf(*edge->src(), edge->src_output());
}

const Node* Resources::OwnerOfInput(const Node& user, int input) const {
  const Node* handle = HandleOfInput(user, input);
  return handle == nullptr ? nullptr : OwnerOf(*handle);
}

const Node* Resources::IteratorOf(const Node& source) const {
  const Node* owner = IsBufferTake(source) ? nullptr : OwnerOfInput(source, 0);
  return owner == nullptr ? &source : owner;
}

const std::vector<ResourceUse>& Resources::UsesOf(const Node& owner) const {
  static const auto* const kNone = new std::vector<ResourceUse>;
  const auto it = uses_.find(&owner);
  return it == uses_.end() ? *kNone : it->second;
}

std::vector<const Node*> Resources::NamedBy(const Node& user) const {
  const auto it = named_by_.find(&user);
  return it == named_by_.end() ? std::vector<const Node*>() : it->second;
}

std::vector<const Node*> Resources::HandlesOf(const Node& owner) const {
  std::vector<const Node*> handles = {&owner};
  if (const auto it = others_.find(&owner); it != others_.end()) {
    handles.insert(handles.end(), it->second.begin(), it->second.end());
  }
  return handles;
}

}  // namespace staging
}  // namespace tensorflow
