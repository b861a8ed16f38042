// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/step_partition.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow_staging/core/ahead/division/xla_division.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"

namespace tensorflow {
namespace staging {
namespace {

// How many nodes outside to name.
constexpr size_t kMostOutside = 10;

// Returns why an iterator is used in a way that a stage cannot stand for; empty
// if it is read by next() alone.
std::string OtherUse(const CallSite& root, const std::vector<StepInput>& inputs,
                     const Node* loop, const FlatStep& flat) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != InputKind::kIterator) continue;
    const Node* handle = flat.Find({&root, root.body->arg_nodes[i]});
    for (const Edge* edge : handle->out_edges()) {
      // The body of a loop returns the iterator for the next iteration.
      const SiteNode user = flat.Original(*edge->dst());
      if (edge->IsControlEdge() || user.node == nullptr ||
          user.node->type_string() == "Identity" || user.node == loop ||
          absl::c_linear_search(flat.reads(), user)) {
        continue;
      }
      const bool branches = user.node->IsIfNode() || user.node->IsCaseNode();
      return absl::StrCat(
          "'", user.node->name(), "' (", user.node->type_string(),
          branches ? ") reads the iterator in a branch"
                   : ") uses the iterator other than by next()");
    }
  }
  return "";
}

// Returns why the reads are not in one region; empty if they are.
std::string NotInOneRegion(const FlatStep& flat,
                           const StagePartition& partition) {
  for (const SiteNode& read : flat.reads()) {
    const Node* reader = flat.Find(read);
    const LocatedReason why = partition.WhyNot(*reader);
    if (why.reason != StepReason::kNone) {
      return absl::StrCat("'", reader->name(), "', which reads the iterator, ",
                          ReasonText(*reader, why));
    }
  }
  if (flat.reads().empty()) return "the step does not read the iterator";
  if (partition.regions().size() != 1) {
    return "it reads its iterator in several independent ways";
  }
  return "";
}

// Sets nodes_ahead and outside.
void Describe(const StagePartition& partition,
              const std::vector<const Node*>& region, StepPartition* found) {
  const std::set<const Node*> ahead(region.begin(), region.end());
  std::set<const Node*> named;
  for (const Node* node : region) {
    if (found->flat->Original(*node).node != nullptr) {
      found->nodes_ahead.push_back(node->name());
    }
    for (const Edge* edge : node->out_edges()) {
      const Node& user = *edge->dst();
      if (edge->IsControlEdge() || !user.IsOp() || ahead.count(&user) > 0 ||
          found->flat->Original(user).node == nullptr ||
          named.size() >= kMostOutside || !named.insert(&user).second) {
        continue;
      }
      const LocatedReason why = partition.WhyNot(user);
      found->outside.push_back({user.name(), user.type_string(),
                                why.reason == StepReason::kNone
                                    ? "is compiled by XLA"
                                    : ReasonText(user, why)});
    }
  }
}

// Sets all of `found` but what random states change, for its flat graph.
void Partition(const CallSite& root, const std::vector<StepInput>& inputs,
               const Node* loop, StepPartition* found) {
  const FlatStep& flat = *found->flat;
  const StagePartition partition(flat.graph(), NodeFilter(),
                                 RecordContent::kBoundaryOnly,
                                 /*stale=*/nullptr, flat.roles());
  found->why_not = OtherUse(root, inputs, loop, flat);
  if (found->why_not.empty()) found->why_not = NotInOneRegion(flat, partition);
  if (!found->why_not.empty()) return;
  const XlaDivision divided =
      DivideXlaCalls(flat, partition.regions()[0].nodes);
  found->why_not = divided.why_not;
  if (!divided.why_not.empty()) return;
  size_t originals = 0;
  for (const Node* node : divided.ahead) {
    const SiteNode original = flat.Original(*node);
    if (original.node == nullptr) continue;
    ++originals;
    SiteSides& site = found->sites[original.site];
    site.ahead.insert(original.node);
    if (divided.repeated.count(node) > 0) site.repeated.insert(original.node);
  }
  Describe(partition, divided.ahead, found);
  if (originals > flat.reads().size()) return;
  found->why_not = "nothing that follows the data can run ahead";
  if (!found->outside.empty()) {
    const NodeInRest& first = found->outside[0];
    absl::StrAppend(&found->why_not, ": '", first.name, "' (", first.op, ") ",
                    first.why);
  }
}

}  // namespace

Status PartitionStep(const CallSite& root, std::vector<StepInput> inputs,
                     const Node* loop, const FunctionLibraryDefinition& library,
                     StepPartition* found) {
  // The draws show which variables are states of random generators.
  for (StepInput& input : inputs) {
    if (input.kind == InputKind::kVariable) {
      input.kind = InputKind::kRandomState;
    }
  }
  bool dropped = false;
  do {
    *found = StepPartition();
    TF_RETURN_IF_ERROR(
        FlatStep::Create(root, inputs, library, loop, &found->flat));
    Partition(root, inputs, loop, found);
    if (found->why_not.empty()) {
      TF_RETURN_IF_ERROR(FindRandomStates(root, loop, *found->flat, &inputs,
                                          &found->sites, &found->random_states,
                                          &dropped));
    } else {
      dropped = DropRandomStates(*found->flat, &inputs);
    }
  } while (dropped);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
