// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/restored_position.h"

#include <utility>

namespace tensorflow {
namespace staging {

void RestoredPosition::Set(Position position) {
  std::optional<Position> before;  // Destroyed without the lock.
  mutex_lock l(mu_);
  before = std::exchange(position_, std::move(position));
}

void RestoredPosition::Forget() {
  std::optional<Position> before;
  mutex_lock l(mu_);
  before = std::exchange(position_, std::nullopt);
}

std::optional<RestoredPosition::Position> RestoredPosition::Get() const {
  mutex_lock l(mu_);
  return position_;
}

void RestoredPosition::SetInitializer(std::string name) {
  mutex_lock l(mu_);
  initializer_ = std::move(name);
}

std::string RestoredPosition::initializer() const {
  mutex_lock l(mu_);
  return initializer_;
}

}  // namespace staging
}  // namespace tensorflow
