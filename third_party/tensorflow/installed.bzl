# SPDX-License-Identifier: Apache-2.0
"""@tensorflow_installed: an official TensorFlow that pip has installed, with pybind11 and the headers of its Python."""

load("//third_party:execute.bzl", "execute_or_fail")

# The variable with the path of the Python beside which these packages are.
_PYTHON = "TF_STAGING_PLUGIN_PYTHON"

def _tensorflow_installed_impl(rctx):
    python = rctx.os.environ.get(_PYTHON)
    if not python:
        fail(_PYTHON + " names no Python with an official TensorFlow. ci/build_plugin.sh installs one, and sets it.")
    query = execute_or_fail(
        rctx,
        [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib')); print(sysconfig.get_path('include'))"],
        "ask {} for its folders".format(python),
    )
    packages, include = query.stdout.strip().split("\n")

    # The same paths for each Python: what does not use its headers is compiled once for all.
    rctx.symlink(packages + "/tensorflow", "tensorflow")
    rctx.symlink(packages + "/pybind11/include", "pybind11")
    rctx.symlink(include, "python")
    rctx.symlink(python, "python3")
    rctx.file("BUILD.bazel", rctx.read(Label("//third_party/tensorflow:installed.BUILD")))

tensorflow_installed = repository_rule(
    implementation = _tensorflow_installed_impl,
    environ = [_PYTHON],
    doc = "The official TensorFlow that the plugin is built for.",
)
