// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_SAVED_STATE_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_SAVED_STATE_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

// What a checkpoint has of the stages of an iterator, beside its position.
// TensorFlow without stages ignores it, and so loses the records.
struct SavedState {
  // The op that initialised the iterator (NameOfInitializer).
  std::string initializer;
  // By stage, oldest first.
  std::map<std::string, std::vector<SavedRecord>> records;
  // Elements of the iterator that no record has yet.
  std::vector<std::vector<Tensor>> elements;
};

// Returns whether `reader` has a SavedState. Without stages, or saved by
// another TensorFlow, a position has none.
bool HasSavedState(const data::IteratorStateReader& reader);

// Returns INVALID_ARGUMENT, with the stage and the tensor, if a checkpoint
// cannot keep a record.
Status Write(const SavedState& state, data::IteratorStateWriter* writer);
Status Read(data::IteratorStateReader* reader, SavedState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_SAVED_STATE_H_
