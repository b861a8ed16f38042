# SPDX-License-Identifier: Apache-2.0
"""@native_code_tools: CUDA's assembler ptxas, and LZ4 for the Python of the build, with which GPU code is packed."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi", "python_interpreter")
load("//third_party:execute.bzl", "execute_or_fail", "unzip")
load("//third_party:versions.bzl", "PTXAS", "PYTHONS")

_PTXAS_PATH = "nvidia/cuda_nvcc/bin/ptxas"

def _native_code_tools_impl(rctx):
    rctx.symlink(fetch_from_pypi(rctx, PTXAS), "ptxas.whl")
    execute_or_fail(rctx, ["unzip", "-q", "ptxas.whl", _PTXAS_PATH], "unpack ptxas.whl")
    execute_or_fail(rctx, ["chmod", "+x", _PTXAS_PATH], "make ptxas executable")
    rctx.symlink(fetch_from_pypi(rctx, PYTHONS[python_interpreter(rctx).version].lz4), "lz4.whl")
    unzip(rctx, "lz4.whl")
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

exports_files(["{ptxas}"])

filegroup(
    name = "lz4",
    srcs = glob(["lz4/**"]),
)
""".format(ptxas = _PTXAS_PATH))

native_code_tools = repository_rule(
    implementation = _native_code_tools_impl,
    environ = DOWNLOAD_ENVIRON + ["PYTHON_BIN_PATH"],
    doc = "What compiles the GPU code of the wheel for chips.",
)
