// SPDX-License-Identifier: Apache-2.0
//
// How AddressSanitizer, its leak check and UndefinedBehaviorSanitizer work in
// each test that contains this file, unless ASAN_OPTIONS and UBSAN_OPTIONS
// say otherwise.

// The sanitizers call these functions by their names before any other code.
extern "C" {

const char* __asan_default_options() {
  return "detect_stack_use_after_return=1";
}

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

}  // extern "C"
