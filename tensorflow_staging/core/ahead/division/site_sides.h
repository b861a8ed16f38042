// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_SITE_SIDES_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_SITE_SIDES_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/function_part.h"

namespace tensorflow {
namespace staging {

// On which side of the buffer the nodes of a site are. The partition says what
// is ahead, CompleteSides the rest.
struct SiteSides {
  NodeSet ahead;
  // Of those: draws from a generator's state, which both sides make. The draws of
  // loops move the state in the rest instead (loop_draws.h).
  NodeSet twice;
  // Of those: what both sides compute, without effects; the rest uses its own
  // results.
  NodeSet repeated;

  NodeSet rest;
  // What both sides use, such as constants.
  NodeSet shared;
  // The outputs of nodes ahead that the rest uses.
  std::vector<NodeOutput> boundary;

  // The calls that are the rests of divided calls.
  NodeSet called_rests;
  // The calls that are the parts ahead of divided calls, and have no effects but
  // draws that the rests make as well.
  NodeSet drawing_calls;

  NodeSet AheadAndShared() const {
    NodeSet both = ahead;
    both.insert(shared.begin(), shared.end());
    return both;
  }
};

using SidesBySite = std::map<const CallSite*, SiteSides>;

// Finds what the outputs of `site` need of the nodes that are not ahead, and
// what the nodes ahead need of those. Sets `*why_not` if the two cannot be
// divided so.
Status CompleteSides(const CallSite& site, SiteSides* sides,
                     std::string* why_not);

// The tensors that the outputs of a site are.
Status OutputsOf(const CallSite& site, std::vector<NodeOutput>* outputs);

// The parameters that `nodes` use, in order.
std::vector<Node*> ArgsOf(const CallSite& site, const NodeSet& nodes);

// The nodes of `part` that stand for those of `nodes` which are control outputs
// of the site.
std::vector<Node*> ControlOutputsIn(const CallSite& site, const NodeSet& nodes,
                                    const FunctionPart& part);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_SITE_SIDES_H_
