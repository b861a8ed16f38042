// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_SCOPED_THREAD_VALUE_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_SCOPED_THREAD_VALUE_H_

namespace tensorflow {
namespace staging {

// Gives a thread_local variable another value for the lifetime of this object,
// which must live on the stack of one thread. Scopes nest.
//
// TensorFlow's interfaces often have no argument for what a caller of ours has
// to tell the code of ours far below it.
template <typename T>
class ScopedThreadValue {
 public:
  ScopedThreadValue(T* variable, T value)
      : variable_(variable), outer_(*variable) {
    *variable_ = value;
  }
  ~ScopedThreadValue() { *variable_ = outer_; }

  ScopedThreadValue(const ScopedThreadValue&) = delete;
  ScopedThreadValue& operator=(const ScopedThreadValue&) = delete;

 private:
  T* const variable_;
  const T outer_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_SCOPED_THREAD_VALUE_H_
