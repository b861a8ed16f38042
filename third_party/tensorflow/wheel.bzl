# SPDX-License-Identifier: Apache-2.0
"""@tensorflow_wheel_cpu and @tensorflow_wheel_cuda: the official wheel, packed and unpacked."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "fetch_from_pypi")
load("//third_party:versions.bzl", "TENSORFLOW_WHEEL_CPU", "TENSORFLOW_WHEEL_CUDA")

_WHEELS = {
    "cpu": TENSORFLOW_WHEEL_CPU,
    "cuda": TENSORFLOW_WHEEL_CUDA,
}

def _tensorflow_wheel_impl(rctx):
    wheel = fetch_from_pypi(rctx, _WHEELS[rctx.attr.flavor])
    rctx.symlink(wheel, "base.whl")
    rctx.execute(["unzip", "-q", "base.whl"])
    if not rctx.path("tensorflow/libtensorflow_cc.so.2").exists:
        fail("Could not unpack {}: is unzip installed?".format(wheel))
    rctx.file("BUILD.bazel", rctx.read(Label("//third_party/tensorflow:wheel.BUILD")))

tensorflow_wheel = repository_rule(
    implementation = _tensorflow_wheel_impl,
    attrs = {"flavor": attr.string(mandatory = True, values = _WHEELS.keys())},
    environ = DOWNLOAD_ENVIRON,
    doc = "An official TensorFlow wheel, as the base to stack upon.",
)
