// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_LOOP_DRAWS_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_LOOP_DRAWS_H_

#include <optional>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/draw.h"
#include "tensorflow_staging/core/ahead/division/site_sides.h"

namespace tensorflow {
namespace staging {

// If all that `node`, a loop, a conditional or a call, does with its input `input`
// is to draw from the generator of that state, returns its algorithm.
std::optional<int> AlgorithmOfDraws(const Node& node, int input,
                                    const FunctionLibraryDefinition& library);

// `draw`, a loop, a conditional or a call, is ahead, where it draws from a copy of
// the state. Adds to its site what measures there how far it moves the copy, and
// what moves the state as far in the rest: how often a loop draws may depend on
// the data. `sides` are those of the site.
Status MoveStateInRest(const Draw& draw, SiteSides* sides);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_LOOP_DRAWS_H_
