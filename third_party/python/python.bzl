# SPDX-License-Identifier: Apache-2.0
"""@python: the interpreter, its version and headers, and a folder of the packages that `import tensorflow` needs."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "local_folder", "python_interpreter")
load("//third_party:execute.bzl", "execute_or_fail")
load("//third_party:versions.bzl", "PYTHONS")

def _install_packages(rctx, python, requirements):
    """Installs pinned packages into site-packages/.

    Where TF_STAGING_DISTDIR names a folder, pip first installs from that folder alone, without any network. Only if
    that fails does pip use its index too. Either way, it checks every package's hash.

    Args:
      rctx: the repository context.
      python: the interpreter's path.
      requirements: the path of the requirements file.
    """
    install = [
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
    ]
    folder = local_folder(rctx)
    if folder:
        install.append("--find-links=" + folder)

        # pip ignores the machine's settings here: --no-index alone keeps their find-links, which may be URLs.
        offline = rctx.execute(
            install + ["--no-index", "--isolated"],
            environment = {"PIP_CONFIG_FILE": "/dev/null"},
            timeout = 1800,
        )
        if offline.return_code == 0:
            return

        # buildifier: disable=print
        print("pip could not install all packages from {} alone; it now tries with its index:\n{}".format(
            folder,
            offline.stderr,
        ))

        # pip skips a package whose folder exists, however incomplete it is.
        rctx.delete("site-packages")
    execute_or_fail(
        rctx,
        install,
        "install the packages of {}".format(requirements),
        advice = ("Either let pip reach its index, or put the packages' wheels into a folder and name the folder in " +
                  "TF_STAGING_DISTDIR."),
        timeout = 1800,
    )

def _python_impl(rctx):
    python = python_interpreter(rctx)
    query = execute_or_fail(
        rctx,
        [python.path, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
        "ask {} for the folder of its headers".format(python.path),
    )
    include = query.stdout.strip()
    if not rctx.path(include + "/Python.h").exists:
        fail("{} has no headers in {}. Install them (Debian: python{}-dev).".format(
            python.path,
            include,
            python.version,
        ))
    rctx.symlink(include, "include")
    rctx.symlink(python.path, "python3")
    rctx.file("version.bzl", "PYTHON_VERSION = \"{}\"\n".format(python.version))

    requirements = rctx.path(Label("//third_party/python:" + PYTHONS[python.version].requirements))
    _install_packages(rctx, python.path, requirements)
    rctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

exports_files(["python3"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)

# One file stands for site-packages: ten thousand inputs would slow every action down.
exports_files(["site-packages.stamp"])
""")
    rctx.file("site-packages.stamp", rctx.read(requirements))

python = repository_rule(
    implementation = _python_impl,
    environ = DOWNLOAD_ENVIRON + ["PYTHON_BIN_PATH"],
    doc = "The Python for which the wheel is built.",
)
