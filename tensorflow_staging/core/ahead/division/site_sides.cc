// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/site_sides.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace tensorflow {
namespace staging {
namespace {

// Finds the nodes of the rest, and the boundary.
Status FindRest(const CallSite& site, SiteSides* sides) {
  std::vector<NodeOutput> outputs;
  TF_RETURN_IF_ERROR(OutputsOf(site, &outputs));
  std::set<NodeOutput, NodeIdLess> boundary;
  std::vector<const Node*> to_visit;
  // Only those whose values the rest uses.
  NodeSet repeated;
  const auto to_repeat = [&repeated, &to_visit](const Node* node) {
    if (repeated.insert(node).second) to_visit.push_back(node);
  };
  for (const NodeOutput& output : outputs) {
    if (sides->ahead.count(output.node) == 0) {
      to_visit.push_back(output.node);
    } else if (site.caller == nullptr) {
      boundary.insert(output);
    }
  }
  for (const Node* node : site.body->control_ret_nodes) {
    to_visit.push_back(node);
  }
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    if (!node->IsOp() || node->IsArg() ||
        (sides->ahead.count(node) > 0 && sides->twice.count(node) == 0 &&
         repeated.count(node) == 0) ||
        !sides->rest.insert(node).second) {
      continue;
    }
    for (const Edge* edge : node->in_edges()) {
      const Node* before = edge->src();
      if (!edge->IsControlEdge() && sides->repeated.count(before) > 0) {
        to_repeat(before);
      } else if (!edge->IsControlEdge() && sides->ahead.count(before) > 0) {
        boundary.insert({before, edge->src_output()});
      } else {
        to_visit.push_back(before);
      }
    }
  }
  sides->boundary.assign(boundary.begin(), boundary.end());
  return OkStatus();
}

// Finds what the nodes ahead need beside themselves.
std::string FindShared(SiteSides* sides) {
  std::vector<const Node*> to_visit(sides->ahead.begin(), sides->ahead.end());
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    for (const Edge* edge : node->in_edges()) {
      const Node* before = edge->src();
      if (!before->IsOp() || before->IsArg() ||
          sides->ahead.count(before) > 0) {
        continue;
      }
      if (sides->called_rests.count(before) > 0) {
        // What runs ahead waits for nothing that has an effect in the rest.
        if (edge->IsControlEdge()) continue;
        return absl::StrCat("'", node->name(),
                            "' is needed ahead, and uses a result of '",
                            before->name(), "' that depends on no element");
      }
      if (sides->shared.insert(before).second) to_visit.push_back(before);
    }
  }
  return "";
}

}  // namespace

Status CompleteSides(const CallSite& site, SiteSides* sides,
                     std::string* why_not) {
  TF_RETURN_IF_ERROR(FindRest(site, sides));
  *why_not = FindShared(sides);
  return OkStatus();
}

Status OutputsOf(const CallSite& site, std::vector<NodeOutput>* outputs) {
  for (const Node* node : site.body->ret_nodes) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(node->input_edge(0, &edge));
    outputs->push_back({edge->src(), edge->src_output()});
  }
  return OkStatus();
}

std::vector<Node*> ArgsOf(const CallSite& site, const NodeSet& nodes) {
  NodeSet used;
  for (const Node* node : nodes) {
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsArg()) used.insert(edge->src());
    }
  }
  std::vector<Node*> args;
  for (Node* arg : site.body->arg_nodes) {
    if (used.count(arg) > 0) args.push_back(arg);
  }
  return args;
}

std::vector<Node*> ControlOutputsIn(const CallSite& site, const NodeSet& nodes,
                                    const FunctionPart& part) {
  std::vector<Node*> found;
  for (const Node* node : site.body->control_ret_nodes) {
    if (nodes.count(node) > 0) found.push_back(part.Find(node));
  }
  return found;
}

}  // namespace staging
}  // namespace tensorflow
