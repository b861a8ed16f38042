# SPDX-License-Identifier: Apache-2.0
"""Fetches pinned files for the repository rules.

If the folder named by TF_STAGING_DISTDIR holds the file, it comes from there. Otherwise the ordinary client of its
registry (pip, apt) fetches it, with the machine's own settings. Either way, the file must have the pinned sha256.
"""

load("//third_party:execute.bzl", "execute_or_fail")
load("//third_party:versions.bzl", "DEFAULT_PYTHON", "PYTHONS", "TENSORFLOW_VERSION")

# The variable that changes where a download comes from; every rule that downloads lists it in `environ`.
DOWNLOAD_ENVIRON = ["TF_STAGING_DISTDIR"]

def python_interpreter(rctx):
    """Finds the Python that runs the build, and for which the wheel is built.

    Args:
      rctx: the repository context. The rule lists PYTHON_BIN_PATH in `environ` if its files depend on the version.

    Returns:
      A struct with the interpreter's `path` and its `version`, a key of PYTHONS.
    """
    named = rctx.os.environ.get("PYTHON_BIN_PATH")
    found = named or rctx.which("python" + DEFAULT_PYTHON) or rctx.which("python3")
    if not found:
        fail(("No Python found. Install Python {0} with its headers (Debian: python{0}-dev), or set " +
              "PYTHON_BIN_PATH.").format(DEFAULT_PYTHON))
    advice = "Set PYTHON_BIN_PATH to a CPython of one of these versions: {}.".format(", ".join(PYTHONS.keys()))
    query = execute_or_fail(
        rctx,
        [found, "-c", "import sys; print(sys.version.split()[0]); print(sys.executable)"],
        "ask {} for its version".format(found),
        advice = advice,
    )
    answer = query.stdout.split("\n")
    version = ".".join(answer[0].split(".")[:2])
    if version not in PYTHONS:
        fail("There is no official wheel of TensorFlow {} for {}, which is Python {}. {}".format(
            TENSORFLOW_VERSION,
            found,
            answer[0],
            advice,
        ))
    if version != DEFAULT_PYTHON and not named:
        fail("The wheel is built for Python {} by default, but {} is {}. {}".format(
            DEFAULT_PYTHON,
            found,
            answer[0],
            advice,
        ))
    return struct(path = answer[1], version = version)

def local_folder(rctx):
    """Returns the folder of local archives that TF_STAGING_DISTDIR names, as a string, or None.

    Args:
      rctx: the repository context.
    """
    return rctx.os.environ.get("TF_STAGING_DISTDIR") or None

def local_file(rctx, name):
    """Returns the path of the file `name` in the folder of local archives, or None.

    Args:
      rctx: the repository context.
      name: the file's name.
    """
    folder = local_folder(rctx)
    if not folder:
        return None
    path = rctx.path(folder + "/" + name)
    return path if path.exists else None

def check_sha256(rctx, path, sha256, what):
    """Stops the build unless a file has exactly the pinned bytes.

    Args:
      rctx: the repository context.
      path: the file's path.
      sha256: the pinned sum.
      what: what the file is, for the error message.
    """
    result = execute_or_fail(rctx, ["sha256sum", str(path)], "compute the sha256 of {} ({})".format(path, what))
    actual = result.stdout.split(" ")[0]
    if actual != sha256:
        fail("{}: {} has sha256 {}, but third_party/versions.bzl pins {}. Refusing to build from it.".format(
            what,
            path,
            actual,
            sha256,
        ))

def fetch_from_pypi(rctx, package):
    """Fetches one pinned wheel and checks it.

    Args:
      rctx: the repository context.
      package: a struct of versions.bzl (requirement, file, sha256).

    Returns:
      The wheel's path.
    """
    path = local_file(rctx, package.file)
    if not path:
        if local_folder(rctx):
            # buildifier: disable=print
            print("{} has no {}; pip downloads {}.".format(local_folder(rctx), package.file, package.requirement))
        rctx.file("requirement.txt", "{} --hash=sha256:{}\n".format(package.requirement, package.sha256))
        execute_or_fail(
            rctx,
            [
                python_interpreter(rctx).path,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "--require-hashes",
                "--dest=download",
                "--requirement=requirement.txt",
            ],
            "download {} with pip".format(package.requirement),
            advice = ("Either let pip reach its index, or put {} into a folder and name the folder in " +
                      "TF_STAGING_DISTDIR.").format(package.file),
            timeout = 1800,
        )
        path = rctx.path("download/" + package.file)
    check_sha256(rctx, path, package.sha256, package.requirement)
    return path
