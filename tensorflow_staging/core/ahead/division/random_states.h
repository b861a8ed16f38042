// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_RANDOM_STATES_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_RANDOM_STATES_H_

#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/flat_step.h"
#include "tensorflow_staging/core/ahead/division/site_sides.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"

namespace tensorflow {
namespace staging {

// An input of a step that is the state of a random generator. What runs ahead
// draws from a copy, and the rest draws from the state as well, so that the state
// is at any time what it is without a stage.
struct RandomState {
  int input = -1;
  DataType dtype = DT_INT64;

  bool operator==(const RandomState& other) const {
    return input == other.input && dtype == other.dtype;
  }
};

// Sets `*states` to the inputs of `root` that are such states, where `*sites` says
// what of `flat` is ahead, and lets the rest of the step change them there as the
// draws ahead change their copies.
//
// Makes variables of the other inputs that `flat` takes for states: of those that
// are used otherwise, too; that have draws which are not ahead or that the rest
// could not repeat; and whose draws meet no element ahead. The masks of a dropout
// deep in the model, for example, would only fill the records. If it makes any,
// sets `*dropped` and does nothing else: what can run ahead has changed.
//
// `loop`, a node of the root or null, reads records of its own, with draws of its
// own.
Status FindRandomStates(const CallSite& root, const Node* loop,
                        const FlatStep& flat, std::vector<StepInput>* inputs,
                        SidesBySite* sites, std::vector<RandomState>* states,
                        bool* dropped);

// Makes variables of all inputs that `flat` takes for states. Returns whether
// there were any.
bool DropRandomStates(const FlatStep& flat, std::vector<StepInput>* inputs);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_RANDOM_STATES_H_
