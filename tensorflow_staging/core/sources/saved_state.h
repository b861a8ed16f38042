// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_SAVED_STATE_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_SAVED_STATE_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/ledger.h"

namespace tensorflow {
namespace staging {

// What a checkpoint has of an iterator beside its position: the ledger, which says
// nothing of stages. TensorFlow without stages ignores it, and so leaves out what
// was read ahead.
struct SavedState {
  // The op that initialised the iterator (NameOfInitializer).
  std::string initializer;
  // What had left the iterator and no step had used, the oldest first.
  Outcomes outcomes;
};

// Returns whether `reader` has a SavedState. Without stages, or saved by
// another TensorFlow, a position has none.
bool HasSavedState(const data::IteratorStateReader& reader);

// Returns INVALID_ARGUMENT, with the component, if a checkpoint cannot keep an
// element.
Status Write(const SavedState& state, data::IteratorStateWriter* writer);
// Returns INVALID_ARGUMENT if the checkpoint is damaged, or of a version before
// the ledger.
Status Read(data::IteratorStateReader* reader, SavedState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_SAVED_STATE_H_
