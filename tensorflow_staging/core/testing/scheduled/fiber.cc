// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/scheduled/fiber.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

// The sanitizers have to know which stack is used; null without them.
extern "C" {
void* __tsan_get_current_fiber() __attribute__((weak));
void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom,
                                    size_t size) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* fake_stack_save,
                                     const void** bottom_old, size_t* size_old)
    __attribute__((weak));
}

namespace tensorflow {
namespace scheduled {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuardBytes = size_t{4} << 10;

// Of fibers that have been destroyed.
std::vector<void*>* FreeStacks() {
  static auto* const stacks = new std::vector<void*>;
  return stacks;
}

void* NewStack() {
  if (!FreeStacks()->empty()) {
    void* const stack = FreeStacks()->back();
    FreeStacks()->pop_back();
    return stack;
  }
  void* const stack =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  // A call that needs more than the stack must not write to another one.
  if (stack == MAP_FAILED || mprotect(stack, kGuardBytes, PROT_NONE) != 0) {
    std::perror("A fiber has no stack");
    std::abort();
  }
  return stack;
}

// Goes on in `to`. `*fake_stack` is null if the stack is never used again.
void Switch(ucontext_t* from, const ucontext_t* to, void** fake_stack,
            const void* bottom, size_t size) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
  }
  swapcontext(from, to);
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(NewStack()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Main), 2,
              static_cast<unsigned int>(self >> 32),
              static_cast<unsigned int>(self));
}

Fiber::~Fiber() {
  if (tsan_fiber_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
  FreeStacks()->push_back(stack_);
}

void Fiber::Enter() {
  void* fake_stack = nullptr;
  if (__tsan_create_fiber != nullptr) {
    if (tsan_fiber_ == nullptr) tsan_fiber_ = __tsan_create_fiber(0);
    tsan_caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber_, 0);
  }
  Switch(&caller_, &context_, &fake_stack, stack_, kStackBytes);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  }
}

void Fiber::Leave() {
  void* fake_stack = nullptr;
  if (__tsan_switch_to_fiber != nullptr) {
    __tsan_switch_to_fiber(tsan_caller_, 0);
  }
  Switch(&context_, &caller_, has_returned_ ? nullptr : &fake_stack,
         caller_stack_, caller_stack_bytes_);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack, &caller_stack_,
                                    &caller_stack_bytes_);
  }
}

// makecontext passes numbers of 32 bits.
void Fiber::Main(unsigned int high, unsigned int low) {
  auto* const self = reinterpret_cast<Fiber*>(
      (static_cast<uintptr_t>(high) << 32) | static_cast<uintptr_t>(low));
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_,
                                    &self->caller_stack_bytes_);
  }
  self->body_();
  self->body_ = nullptr;
  self->has_returned_ = true;
  self->Leave();
}

}  // namespace scheduled
}  // namespace tensorflow
