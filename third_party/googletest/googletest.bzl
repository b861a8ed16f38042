# SPDX-License-Identifier: Apache-2.0
"""@googletest: the system's GoogleTest (Debian: libgtest-dev, libgmock-dev)."""

def _googletest_impl(rctx):
    if not rctx.path("/usr/include/gtest/gtest.h").exists:
        fail("GoogleTest is not installed. Install it (Debian: libgtest-dev libgmock-dev).")
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

# The compiler and the linker find the headers and archives on their default search paths.
cc_library(
    name = "gtest_main",
    linkopts = [
        "-lgtest_main",
        "-lgmock",
        "-lgtest",
        "-pthread",
    ],
)
""")

googletest = repository_rule(
    implementation = _googletest_impl,
    local = True,
    doc = "The GoogleTest that is installed on the system.",
)
