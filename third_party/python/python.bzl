# SPDX-License-Identifier: Apache-2.0
"""@python: the interpreter's headers, and a folder with the packages that `import tensorflow` needs at build time."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "python_interpreter")

def _python_impl(rctx):
    python = python_interpreter(rctx)
    query = rctx.execute([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"])
    include = query.stdout.strip()
    if not rctx.path(include + "/Python.h").exists:
        fail("{} has no headers in {}. Install them (Debian: python3.11-dev).".format(python, include))
    rctx.symlink(include, "include")
    rctx.symlink(python, "python3")

    requirements = rctx.path(Label("//third_party/python:requirements.txt"))
    arguments = ["--find-links=" + rctx.os.environ["TF_STAGING_DISTDIR"]] if "TF_STAGING_DISTDIR" in rctx.os.environ else []
    result = rctx.execute([
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--require-hashes",
        "--only-binary=:all:",
        "--target=site-packages",
        "--requirement=" + str(requirements),
    ] + arguments, timeout = 1800)
    if result.return_code != 0:
        fail("Could not install the packages of third_party/python/requirements.txt:\n" + result.stderr)
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

exports_files(["python3"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)

# One file stands for the folder: ten thousand inputs would slow every action down.
exports_files(["site-packages.stamp"])
""")
    rctx.file("site-packages.stamp", rctx.read(requirements))

python = repository_rule(
    implementation = _python_impl,
    environ = DOWNLOAD_ENVIRON + ["PYTHON_BIN_PATH"],
    doc = "The Python that the wheel is built for.",
)
