// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_XLA_DIVISION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_XLA_DIVISION_H_

#include <set>
#include <string>
#include <vector>

#include "tensorflow_staging/core/ahead/division/flat_step.h"

namespace tensorflow {
namespace staging {

// The part of a region that leaves the calls which XLA compiles.
struct XlaDivision {
  // The nodes of the region that run ahead.
  std::vector<const Node*> ahead;
  // Those of them that the compiled call computes as well: it needs their values
  // when it is compiled. If a record carried them, each other value would
  // compile the call anew.
  std::set<const Node*> repeated;
  // If not empty, why the region cannot run ahead.
  std::string why_not;
};

// Finds what leaves the calls that XLA compiles, if `region`, nodes of the flat
// graph in the order of computation, runs ahead: what XLA cannot compile, such
// as strings and lookups, what needs their values when XLA compiles it, and what
// leads to both. Everything else stays inside: it would be computed in another
// way outside, and its shapes may vary.
XlaDivision DivideXlaCalls(const FlatStep& flat,
                           const std::vector<const Node*>& region);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_XLA_DIVISION_H_
