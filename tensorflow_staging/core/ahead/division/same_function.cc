// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/same_function.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/platform/hash.h"

namespace tensorflow {
namespace staging {
namespace {

// Functions may call each other so deep.
constexpr int kDeepestCall = 64;

// The name of the node of an input, and what follows it: the output, for example.
std::pair<absl::string_view, absl::string_view> SplitInput(
    absl::string_view input) {
  return absl::StrSplit(input, absl::MaxSplits(':', 1));
}

// One of the two functions.
class Side {
 public:
  Side(const FunctionDef& function, const std::vector<int>& inputs) {
    for (int i = 0; i < function.signature().input_arg_size(); ++i) {
      args_[function.signature().input_arg(i).name()] = inputs[i];
    }
    // Each comes after its inputs.
    for (const NodeDef& node : function.node_def()) Add(node);
    for (const auto& output : function.signature().output_arg()) {
      results_.push_back(Value(function.ret(), output.name()));
    }
    for (const std::string& name : function.signature().control_output()) {
      AddControl(Value(function.control_ret(), name), &must_run_);
    }
  }

  const NodeDef* Find(absl::string_view name) const {
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : found->second.def;
  }
  // The number of a parameter; -1 if it is none.
  int InputOf(absl::string_view name) const {
    const auto found = args_.find(name);
    return found == args_.end() ? -1 : found->second;
  }
  // The nodes that a node waits for. A NoOp stands for those before it.
  using Controls = std::set<const NodeDef*>;
  const Controls& ControlsOf(const NodeDef& node) const {
    return nodes_.find(node.name())->second.controls;
  }
  // Equal for nodes that compute the same from the same.
  uint64_t FingerprintOf(const NodeDef& node) const {
    return nodes_.find(node.name())->second.fingerprint;
  }
  // What the function returns.
  const std::vector<std::string>& results() const { return results_; }
  const Controls& must_run() const { return must_run_; }

 private:
  struct Known {
    const NodeDef* def = nullptr;
    Controls controls;
    uint64_t fingerprint = 0;
  };

  template <class Map>
  static std::string Value(const Map& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? "" : found->second;
  }

  void Add(const NodeDef& node) {
    Known known;
    known.def = &node;
    known.fingerprint = Hash64(node.op());
    for (const std::string& input : node.input()) {
      if (absl::StartsWith(input, "^")) {
        AddControl(absl::string_view(input).substr(1), &known.controls);
        continue;
      }
      const auto [name, output] = SplitInput(input);
      const auto from = nodes_.find(name);
      known.fingerprint = Hash64Combine(
          known.fingerprint,
          Hash64Combine(from == nodes_.end() ? InputOf(name) + 1
                                             : from->second.fingerprint,
                        Hash64(output.data(), output.size())));
    }
    uint64_t unordered = 0;
    for (const NodeDef* before : known.controls) {
      unordered += FingerprintOf(*before);
    }
    for (const auto& [name, value] : node.attr()) {
      if (absl::StartsWith(name, "_") || value.has_func()) continue;
      unordered += Hash64Combine(Hash64(name), AttrValueHash(value));
    }
    known.fingerprint = Hash64Combine(known.fingerprint, unordered);
    nodes_[node.name()] = std::move(known);
  }

  void AddControl(absl::string_view name, Controls* controls) const {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return;
    if (found->second.def->op() == "NoOp") {
      controls->insert(found->second.controls.begin(),
                       found->second.controls.end());
    } else {
      controls->insert(found->second.def);
    }
  }

  std::map<std::string, Known, std::less<>> nodes_;
  std::map<std::string, int, std::less<>> args_;
  std::vector<std::string> results_;
  Controls must_run_;
};

// Pairs the nodes of two functions, beginning with what they return.
class Comparison {
 public:
  Comparison(const Side& a, const Side& b,
             const FunctionLibraryDefinition& library, int depth)
      : a_(a), b_(b), library_(library), depth_(depth) {}

  bool Run() {
    if (a_.results().size() != b_.results().size()) return false;
    for (size_t i = 0; i < a_.results().size(); ++i) {
      if (!SameInput(a_.results()[i], b_.results()[i])) return false;
    }
    waiting_.emplace_back(&a_.must_run(), &b_.must_run());
    while (Visit()) {
      if (waiting_.empty()) return true;
      // What uses nodes that are alike tells them apart, so these come last.
      const size_t pairs = pairs_.size();
      for (const bool alike : {false, true}) {
        if (pairs_.size() > pairs) break;
        for (const auto& [a, b] : std::exchange(waiting_, {})) {
          if (!PairControls(*a, *b, alike)) return false;
        }
      }
    }
    return false;
  }

 private:
  bool SameInput(absl::string_view a, absl::string_view b) {
    const auto [a_name, a_output] = SplitInput(a);
    const auto [b_name, b_output] = SplitInput(b);
    if (a_output != b_output) return false;
    if (a_.InputOf(a_name) >= 0 || b_.InputOf(b_name) >= 0) {
      return a_.InputOf(a_name) == b_.InputOf(b_name);
    }
    const NodeDef* const a_node = a_.Find(a_name);
    const NodeDef* const b_node = b_.Find(b_name);
    return a_node != nullptr && b_node != nullptr && Pair(a_node, b_node);
  }

  bool Pair(const NodeDef* a, const NodeDef* b) {
    const auto [pair, is_new] = pairs_.emplace(a, b);
    if (!is_new) return pair->second == b;
    // Two nodes are not one.
    if (!known_.insert(b).second) return false;
    to_visit_.emplace_back(a, b);
    return true;
  }

  // Pairs the nodes of two sets; if not `alike`, only those that no other of the
  // set is like.
  bool PairControls(const Side::Controls& a, const Side::Controls& b,
                    bool alike) {
    if (a.size() != b.size()) return false;
    std::multimap<uint64_t, const NodeDef*> unpaired;
    for (const NodeDef* node : b) {
      if (known_.count(node) == 0) {
        unpaired.emplace(b_.FingerprintOf(*node), node);
      }
    }
    bool all = true;
    for (const NodeDef* node : a) {
      const auto pair = pairs_.find(node);
      if (pair != pairs_.end()) {
        if (b.count(pair->second) == 0) return false;
        continue;
      }
      const uint64_t fingerprint = a_.FingerprintOf(*node);
      const auto found = unpaired.find(fingerprint);
      if (found == unpaired.end()) return false;
      if (!alike && unpaired.count(fingerprint) > 1) {
        all = false;
        continue;
      }
      if (!Pair(node, found->second)) return false;
      unpaired.erase(found);
    }
    if (!all) waiting_.emplace_back(&a, &b);
    return true;
  }

  bool Visit() {
    while (!to_visit_.empty()) {
      const auto [a, b] = to_visit_.back();
      to_visit_.pop_back();
      waiting_.emplace_back(&a_.ControlsOf(*a), &b_.ControlsOf(*b));
      if (a->op() != b->op() || a->device() != b->device() ||
          !SameAttrs(*a, *b) || !SameAttrs(*b, *a) || !SameInputs(*a, *b)) {
        return false;
      }
    }
    return true;
  }

  // The control inputs come last.
  bool SameInputs(const NodeDef& a, const NodeDef& b) {
    for (int i = 0; i < std::max(a.input_size(), b.input_size()); ++i) {
      const bool a_ends = i >= a.input_size() || a.input(i)[0] == '^';
      const bool b_ends = i >= b.input_size() || b.input(i)[0] == '^';
      if (a_ends || b_ends) return a_ends && b_ends;
      if (!SameInput(a.input(i), b.input(i))) return false;
    }
    return true;
  }

  // Whether `b` has the attributes of `a`.
  bool SameAttrs(const NodeDef& a, const NodeDef& b) const {
    for (const auto& [name, value] : a.attr()) {
      if (absl::StartsWith(name, "_")) continue;
      const auto other = b.attr().find(name);
      if (other == b.attr().end()) return false;
      if (value.has_func() && other->second.has_func()) {
        if (!SameCallee(value.func().name(), other->second.func().name())) {
          return false;
        }
      } else if (!AreAttrValuesEqual(value, other->second)) {
        return false;
      }
    }
    return true;
  }

  bool SameCallee(const std::string& a, const std::string& b) const {
    if (a == b) return true;
    const FunctionDef* const a_function = library_.Find(a);
    const FunctionDef* const b_function = library_.Find(b);
    if (a_function == nullptr || b_function == nullptr || depth_ == 0 ||
        a_function->signature().input_arg_size() !=
            b_function->signature().input_arg_size()) {
      return false;
    }
    std::vector<int> inputs(a_function->signature().input_arg_size());
    std::iota(inputs.begin(), inputs.end(), 0);
    const Side a_side(*a_function, inputs), b_side(*b_function, inputs);
    return Comparison(a_side, b_side, library_, depth_ - 1).Run();
  }

  const Side& a_;
  const Side& b_;
  const FunctionLibraryDefinition& library_;
  const int depth_;
  std::map<const NodeDef*, const NodeDef*> pairs_;
  std::set<const NodeDef*> known_;
  std::vector<std::pair<const NodeDef*, const NodeDef*>> to_visit_;
  // Sets of nodes of which some are still to be paired.
  std::vector<std::pair<const Side::Controls*, const Side::Controls*>> waiting_;
};

}  // namespace

bool IsSameFunction(const FunctionDef& a, const std::vector<int>& a_inputs,
                    const FunctionDef& b, const std::vector<int>& b_inputs,
                    const FunctionLibraryDefinition& library) {
  if (a.signature().input_arg_size() != static_cast<int>(a_inputs.size()) ||
      b.signature().input_arg_size() != static_cast<int>(b_inputs.size())) {
    return false;
  }
  const Side a_side(a, a_inputs), b_side(b, b_inputs);
  return Comparison(a_side, b_side, library, kDeepestCall).Run();
}

}  // namespace staging
}  // namespace tensorflow
