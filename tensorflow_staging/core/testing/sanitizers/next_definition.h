// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SANITIZERS_NEXT_DEFINITION_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SANITIZERS_NEXT_DEFINITION_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace tensorflow {
namespace staging {

// Returns the function that the program would call if it did not define one
// with this mangled name itself: the one of TensorFlow's libraries. It may be
// called while the libraries are still being loaded.
template <typename Function>
Function* NextDefinition(const char* mangled_name) {
  void* const address = dlsym(RTLD_NEXT, mangled_name);
  if (address == nullptr) {
    // No logging, which needs locks.
    std::fprintf(stderr, "TensorFlow has no %s.\n", mangled_name);
    std::abort();
  }
  return reinterpret_cast<Function*>(address);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SANITIZERS_NEXT_DEFINITION_H_
