# SPDX-License-Identifier: Apache-2.0
"""How the repository rules get a pinned file: one way for all of them.

A file comes from the folder named by TF_STAGING_DISTDIR if it is there, else from the ordinary client of its registry
(pip, apt), as the machine has it set up. Either way its sha256 decides.
"""

# The variable that changes where a download comes from; every rule that downloads lists it in `environ`.
DOWNLOAD_ENVIRON = ["TF_STAGING_DISTDIR"]

def python_interpreter(rctx):
    """The Python that the wheel is built for and with.

    Args:
      rctx: the repository context.

    Returns:
      The interpreter's path, as a string.
    """
    named = rctx.os.environ.get("PYTHON_BIN_PATH")
    found = named or rctx.which("python3.11") or rctx.which("python3")
    if not found:
        fail("No Python found. Install Python 3.11 with its headers (Debian: python3.11-dev), or set PYTHON_BIN_PATH.")
    query = rctx.execute([found, "-c", "import sys; print(*sys.version_info[:2]); print(sys.executable)"])
    answer = query.stdout.split("\n")
    if query.return_code != 0 or answer[0] != "3 11":
        fail("The base wheel is built for Python 3.11, but {} is {}. Set PYTHON_BIN_PATH to a Python 3.11.".format(
            found,
            answer[0] or query.stderr.strip(),
        ))
    return answer[1]

def local_file(rctx, name):
    """The file `name` of the local archive folder, or None."""
    folder = rctx.os.environ.get("TF_STAGING_DISTDIR")
    if not folder:
        return None
    path = rctx.path(folder + "/" + name)
    return path if path.exists else None

def check_sha256(rctx, path, sha256, what):
    """Stops the build unless `path` has exactly the pinned bytes."""
    result = rctx.execute(["sha256sum", str(path)])
    actual = result.stdout.split(" ")[0]
    if actual != sha256:
        fail("{}: {} has sha256 {}, but third_party/versions.bzl pins {}. Refusing to build from it.".format(
            what,
            path,
            actual or result.stderr,
            sha256,
        ))

def fetch_from_pypi(rctx, package):
    """Brings one pinned wheel and checks it.

    Args:
      rctx: the repository context.
      package: a struct of versions.bzl (requirement, file, sha256).

    Returns:
      The wheel's path.
    """
    path = local_file(rctx, package.file)
    if not path:
        rctx.file("requirement.txt", "{} --hash=sha256:{}\n".format(package.requirement, package.sha256))
        result = rctx.execute([
            python_interpreter(rctx),
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--dest=download",
            "--requirement=requirement.txt",
        ], timeout = 1800)
        path = rctx.path("download/" + package.file)
        if result.return_code != 0 or not path.exists:
            fail(("Could not download {} with pip:\n{}\nEither let pip reach its index, or put {} into a folder and " +
                  "name the folder in TF_STAGING_DISTDIR.").format(package.requirement, result.stderr, package.file))
    check_sha256(rctx, path, package.sha256, package.requirement)
    return path
