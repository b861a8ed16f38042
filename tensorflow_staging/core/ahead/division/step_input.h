// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_INPUT_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_INPUT_H_

#include <string>

namespace tensorflow {
namespace staging {

// What an input of a function stands for. A function does not show it: all
// resources look alike, and so do constants and other arguments.
enum class InputKind {
  kIterator,     // The iterator whose elements are read ahead.
  kTable,        // A table that nothing changes.
  kConstant,     // A tensor that is the same in all calls.
  kVariable,     // A variable, or another resource that may change.
  kShared,       // A variable that something else changes while the step is in
                 // use, so that no copy may stand in its place.
  kRandomState,  // A variable of which the step only draws random numbers; the
                 // division finds it.
  kOther,        // A tensor that may differ from call to call.
};

struct StepInput {
  InputKind kind = InputKind::kOther;
  // For reasons: the name of the variable, for example.
  std::string name;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_INPUT_H_
