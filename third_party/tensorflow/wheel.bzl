# SPDX-License-Identifier: Apache-2.0
"""@tensorflow_wheel_cpu and @tensorflow_wheel_cuda: the official wheel, packed and unpacked."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi", "python_interpreter")
load("//third_party:execute.bzl", "unzip")
load("//third_party:versions.bzl", "PYTHONS")

def _tensorflow_wheel_impl(rctx):
    wheels = PYTHONS[python_interpreter(rctx).version].wheels
    rctx.symlink(fetch_from_pypi(rctx, wheels[rctx.attr.flavor]), "base.whl")
    unzip(rctx, "base.whl")
    rctx.file("BUILD.bazel", rctx.read(Label("//third_party/tensorflow:wheel.BUILD")))

tensorflow_wheel = repository_rule(
    implementation = _tensorflow_wheel_impl,
    attrs = {"flavor": attr.string(mandatory = True, values = ["cpu", "cuda"])},
    environ = DOWNLOAD_ENVIRON + ["PYTHON_BIN_PATH"],
    doc = "An official TensorFlow wheel for the Python of @python, the base that our wheel is built on.",
)
