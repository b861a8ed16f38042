// SPDX-License-Identifier: Apache-2.0

// Finds the test data of TensorFlow's tests among this project's run-time
// files.

#include <cstdlib>
#include <string>

#include "tensorflow/tsl/platform/resource_loader.h"

namespace tsl {
namespace {

// Bazel says that the files are those of this project.
const int workspace_is_set =
    setenv("TEST_WORKSPACE", "tensorflow_source", /*overwrite=*/1);

}  // namespace

std::string GetDataDependencyFilepath(const std::string& relative_path) {
  const char* folder = std::getenv("TEST_SRCDIR");
  return std::string(folder == nullptr ? "." : folder) + "/tensorflow_source/" +
         relative_path;
}

}  // namespace tsl
