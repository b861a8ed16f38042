// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/same_function.h"

#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value_util.h"

namespace tensorflow {
namespace staging {
namespace {

// Functions may call each other so deep.
constexpr int kDeepestCall = 64;

// One of the two functions.
class Side {
 public:
  Side(const FunctionDef& function, const std::vector<int>& inputs)
      : function_(function) {
    for (const NodeDef& node : function.node_def()) nodes_[node.name()] = &node;
    for (int i = 0; i < function.signature().input_arg_size(); ++i) {
      args_[function.signature().input_arg(i).name()] = inputs[i];
    }
  }

  const NodeDef* Find(absl::string_view name) const {
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : found->second;
  }
  // The number of a parameter; -1 if it is none.
  int InputOf(absl::string_view name) const {
    const auto found = args_.find(name);
    return found == args_.end() ? -1 : found->second;
  }
  // What the function returns, and then what it must have run.
  std::vector<std::string> Results() const {
    std::vector<std::string> results;
    for (const auto& output : function_.signature().output_arg()) {
      results.push_back(Value(function_.ret(), output.name()));
    }
    for (const std::string& name : function_.signature().control_output()) {
      results.push_back("^" + Value(function_.control_ret(), name));
    }
    return results;
  }

 private:
  template <class Map>
  static std::string Value(const Map& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? "" : found->second;
  }

  const FunctionDef& function_;
  std::map<std::string, const NodeDef*, std::less<>> nodes_;
  std::map<std::string, int, std::less<>> args_;
};

class Comparison {
 public:
  Comparison(const Side& a, const Side& b,
             const FunctionLibraryDefinition& library, int depth)
      : a_(a), b_(b), library_(library), depth_(depth) {}

  bool Run() { return SameInputs(a_.Results(), b_.Results()) && Visit(); }

 private:
  // Compares what follows the names, and notes nodes to visit.
  template <class Inputs>
  bool SameInputs(const Inputs& a, const Inputs& b) {
    if (a.size() != b.size()) return false;
    for (int i = 0; i < static_cast<int>(a.size()); ++i) {
      if (!SameInput(a[i], b[i])) return false;
    }
    return true;
  }

  bool SameInput(absl::string_view a, absl::string_view b) {
    const std::pair<absl::string_view, absl::string_view> a_parts =
        absl::StrSplit(a, absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> b_parts =
        absl::StrSplit(b, absl::MaxSplits(':', 1));
    if (a_parts.second != b_parts.second) return false;
    a = a_parts.first;
    b = b_parts.first;
    if (absl::StartsWith(a, "^") != absl::StartsWith(b, "^")) return false;
    if (absl::StartsWith(a, "^")) {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
    if (a_.InputOf(a) >= 0 || b_.InputOf(b) >= 0) {
      return a_.InputOf(a) == b_.InputOf(b);
    }
    const NodeDef* const a_node = a_.Find(a);
    const NodeDef* const b_node = b_.Find(b);
    if (a_node == nullptr || b_node == nullptr) return false;
    const auto [pair, is_new] = pairs_.emplace(a_node, b_node);
    if (!is_new) return pair->second == b_node;
    // Two nodes are not one.
    if (!known_.insert(b_node).second) return false;
    to_visit_.emplace_back(a_node, b_node);
    return true;
  }

  bool Visit() {
    while (!to_visit_.empty()) {
      const auto [a, b] = to_visit_.back();
      to_visit_.pop_back();
      if (a->op() != b->op() || a->device() != b->device() ||
          a->input_size() != b->input_size() || !SameAttrs(*a, *b) ||
          !SameAttrs(*b, *a)) {
        return false;
      }
      for (int i = 0; i < a->input_size(); ++i) {
        if (!SameInput(a->input(i), b->input(i))) return false;
      }
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
