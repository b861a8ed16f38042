// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_CALL_SITES_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_CALL_SITES_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// A function as one call of it uses it, with the calls in it: a tree, the root
// of which is the step. Each site has a copy of the function's graph, without
// the nodes that lead to no output and to no control output.
//
// Recursive calls are no sites.
struct CallSite {
  // Null at the root.
  CallSite* caller = nullptr;
  Node* call = nullptr;
  // Whether XLA compiles the call, or one around it.
  bool is_compiled = false;
  std::unique_ptr<FunctionBody> body;
  // By the node that calls, in the order of the nodes' ids.
  std::map<int, std::unique_ptr<CallSite>> calls;

  Graph* graph() const { return body->graph; }
  // The site of a call, or null.
  CallSite* SiteOf(const Node& node) const;
};

// A node of a site.
struct SiteNode {
  const CallSite* site = nullptr;
  const Node* node = nullptr;

  bool operator==(const SiteNode& other) const {
    return site == other.site && node == other.node;
  }
  bool operator<(const SiteNode& other) const {
    return std::make_pair(site, node) < std::make_pair(other.site, other.node);
  }
};

// Whether XLA has kernels for a node, and for those of the functions that it
// calls. It has the same for the CPU and for GPUs.
bool XlaCanCompile(const NodeDef& node,
                   const FunctionLibraryDefinition& library);

// The index of a parameter.
int IndexOf(const Node& arg);

// The node that yields the tensor of `edge`, behind identities.
const Node* BehindIdentities(const Edge* edge);

// Finds the sites of `step`, whose functions are in `library`. `library` must
// outlive the sites.
Status FindCallSites(const FunctionDef& step,
                     const FunctionLibraryDefinition& library,
                     std::unique_ptr<CallSite>* root);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_CALL_SITES_H_
