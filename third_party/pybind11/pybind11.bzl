# SPDX-License-Identifier: Apache-2.0
"""@pybind11: pybind11's headers."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi")
load("//third_party:execute.bzl", "unzip")
load("//third_party:versions.bzl", "PYBIND11")

def _pybind11_impl(rctx):
    rctx.symlink(fetch_from_pypi(rctx, PYBIND11), "pybind11.whl")
    unzip(rctx, "pybind11.whl")
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

# With the two defines, our modules use the same pybind11 internals as TensorFlow's
# (__pybind11_internals_v4_clang_libstdcpp_cxxabi1002__), so that each accepts a TF_Session that the other created.
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
