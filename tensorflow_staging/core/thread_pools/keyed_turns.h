// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_KEYED_TURNS_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_KEYED_TURNS_H_

#include <set>
#include <utility>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {

// Lets threads that would create the same thing do so one after the other, so
// that those after the first find what it has created. Threads that create
// other things, or look for what there is, do not wait meanwhile, as they would
// for a lock around the creation.
//
// Thread-safe.
template <typename Key>
class KeyedTurns {
 public:
  KeyedTurns() = default;
  KeyedTurns(const KeyedTurns&) = delete;
  KeyedTurns& operator=(const KeyedTurns&) = delete;

  // The turn of a thread with `key`: the constructor waits for it, and the
  // destructor ends it.
  class Turn {
   public:
    Turn(KeyedTurns* turns, Key key) : turns_(turns), key_(std::move(key)) {
      mutex_lock lock(turns_->mu_);
      while (!turns_->taken_.insert(key_).second) turns_->ended_.wait(lock);
    }

    ~Turn() {
      mutex_lock lock(turns_->mu_);
      turns_->taken_.erase(key_);
      turns_->ended_.notify_all();
    }

    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    KeyedTurns* const turns_;
    const Key key_;
  };

 private:
  mutex mu_;
  condition_variable ended_;
  // The keys with which a thread has its turn.
  std::set<Key> taken_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_KEYED_TURNS_H_
