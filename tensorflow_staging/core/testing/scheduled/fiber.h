// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_FIBER_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_FIBER_H_

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace tensorflow {
namespace scheduled {

// A call with a stack of its own, which runs in turns with its caller.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it calls Leave, or returns.
  void Enter();
  // Lets Enter return. Call this in the body.
  void Leave();
  bool has_returned() const { return has_returned_; }

 private:
  static void Main(unsigned int high, unsigned int low);

  std::function<void()> body_;
  void* stack_;
  bool has_returned_ = false;
  ucontext_t caller_;
  ucontext_t context_;
  // For the sanitizers.
  void* tsan_fiber_ = nullptr;
  void* tsan_caller_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_FIBER_H_
