// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_CALL_DIVISION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_CALL_DIVISION_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/function_part.h"
#include "tensorflow_staging/core/ahead/division/site_sides.h"
#include "tensorflow_staging/core/ahead/division/step_division.h"
#include "tensorflow_staging/core/ahead/division/step_partition.h"

namespace tensorflow {
namespace staging {

// Divides the calls of a step in place, from the innermost outwards: a call of
// a function of which a part runs ahead becomes two, that of the part ahead and
// that of the rest, which gets what it uses of the first.
class CallDivision {
 public:
  // Adds the new functions to `division`.
  CallDivision(const FunctionLibraryDefinition& library,
               const std::string& prefix, const StepPartition& step,
               StepDivision* division)
      : library_(library), prefix_(prefix), step_(step), division_(*division) {}

  // Divides the calls of `site`, and completes its sides, in which each divided
  // call has two nodes. Sets the division's why_not if that cannot be.
  Status Divide(CallSite* site, SiteSides* sides);

  // The tensor of the flat graph that is `tensor` of `site`.
  std::pair<const Node*, int> OriginOf(const CallSite& site,
                                       const NodeOutput& tensor) const;

 private:
  using NodeOutputs = std::map<NodeOutput, NodeOutput, NodeIdLess>;

  bool HasAhead(const CallSite& site) const;
  Status DivideCall(CallSite* site, CallSite* called, SiteSides* sides);
  // Defines the function of `nodes` of `called`, and adds its call to `site`. It
  // gets the parameters that it uses and the tensors `carried`, of which
  // `*results` has the values in `site`. Adds its own results there.
  Status AddPart(CallSite* site, const CallSite& called, bool is_ahead,
                 const NodeSet& nodes, const std::vector<NodeOutput>& carried,
                 const std::vector<NodeOutput>& returned, NodeOutputs* results,
                 Node** added);

  const FunctionLibraryDefinition& library_;
  const std::string prefix_;
  const StepPartition& step_;
  StepDivision& division_;
  // Of outputs of divided calls, in the graphs of all sites: the tensors of the
  // flat graph.
  std::map<std::pair<const Node*, int>, std::pair<const Node*, int>> origins_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_CALL_DIVISION_H_
