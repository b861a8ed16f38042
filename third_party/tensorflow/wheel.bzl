# SPDX-License-Identifier: Apache-2.0
"""@tensorflow_wheel_cpu and @tensorflow_wheel_cuda: the official wheel, packed and unpacked."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi")
load("//third_party:execute.bzl", "unzip")
load("//third_party:versions.bzl", "TENSORFLOW_WHEEL_CPU", "TENSORFLOW_WHEEL_CUDA")

_WHEELS = {
    "cpu": TENSORFLOW_WHEEL_CPU,
    "cuda": TENSORFLOW_WHEEL_CUDA,
}

def _tensorflow_wheel_impl(rctx):
    rctx.symlink(fetch_from_pypi(rctx, _WHEELS[rctx.attr.flavor]), "base.whl")
    unzip(rctx, "base.whl")
    rctx.file("BUILD.bazel", rctx.read(Label("//third_party/tensorflow:wheel.BUILD")))

tensorflow_wheel = repository_rule(
    implementation = _tensorflow_wheel_impl,
    attrs = {"flavor": attr.string(mandatory = True, values = _WHEELS.keys())},
    environ = DOWNLOAD_ENVIRON,
    doc = "An official TensorFlow wheel, the base that our wheel is built on.",
)
