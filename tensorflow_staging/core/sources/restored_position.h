// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_RESTORED_POSITION_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_RESTORED_POSITION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {

// The position of a checkpoint that an iterator has got, or waits for, because a
// monitored session runs initialisers after the restore: they would begin the
// data anew. Until a step uses what comes after the position, the initialiser of
// the dataset that was saved gives the iterator the position again.
// Thread-safe.
class RestoredPosition {
 public:
  struct Position {
    // As SerializeIterator writes it.
    Tensor position;
    // The op that had initialised the iterator (NameOfInitializer).
    std::string initializer;
    // The fingerprint of the dataset that has got the position already. What is
    // fed may change, and then gives the same initialiser another one.
    std::optional<uint64_t> dataset;
    // The session's run that has restored it.
    int64_t restored_in = 0;
    // Whether the iterator has got it already.
    bool is_given = false;
  };

  void Set(Position position) TF_LOCKS_EXCLUDED(mu_);
  void Forget() TF_LOCKS_EXCLUDED(mu_);
  std::optional<Position> Get() const TF_LOCKS_EXCLUDED(mu_);

  // The op that has initialised the iterator.
  void SetInitializer(std::string name) TF_LOCKS_EXCLUDED(mu_);
  std::string initializer() const TF_LOCKS_EXCLUDED(mu_);

 private:
  mutable mutex mu_;
  std::string initializer_ TF_GUARDED_BY(mu_);
  std::optional<Position> position_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_RESTORED_POSITION_H_
