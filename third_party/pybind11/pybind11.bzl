# SPDX-License-Identifier: Apache-2.0
"""@pybind11: its headers."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi")
load("//third_party:versions.bzl", "PYBIND11")

def _pybind11_impl(rctx):
    rctx.symlink(fetch_from_pypi(rctx, PYBIND11), "pybind11.whl")
    rctx.execute(["unzip", "-q", "pybind11.whl"])
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

# The two defines give our modules the names of TensorFlow's own pybind11 internals
# (__pybind11_internals_v4_clang_libstdcpp_cxxabi1002__), so that a TF_Session made by one is known to the other.
cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11/include/**/*.h"]),
    defines = [
        'PYBIND11_COMPILER_TYPE=\\\\"_clang\\\\"',
        'PYBIND11_BUILD_ABI=\\\\"_cxxabi1002\\\\"',
    ],
    includes = ["pybind11/include"],
)
""")

pybind11 = repository_rule(
    implementation = _pybind11_impl,
    environ = DOWNLOAD_ENVIRON,
    doc = "pybind11's headers, of a version that shares types with TensorFlow's own modules.",
)
