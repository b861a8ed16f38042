# SPDX-License-Identifier: Apache-2.0
"""@tensorflow_source: TensorFlow's pristine tree. @tensorflow_patched: the files that patches/ touches, patched."""

load("//third_party:download.bzl", "DOWNLOAD_ENVIRON", "check_sha256", "local_file")
load("//third_party:execute.bzl", "execute_or_fail")
load("//third_party:versions.bzl", "TENSORFLOW_SOURCE")

def _from_debian(rctx):
    """Returns the path of Debian's archive of the tree, or prints the reason and returns None."""
    source = TENSORFLOW_SOURCE
    apt = rctx.which("apt-get")
    if not apt:
        # buildifier: disable=print
        print("This machine has no apt-get, and so no access to Debian's source package.")
        return None
    targets = rctx.execute([apt, "indextargets", "--format", "$(SITE)|$(ORIGIN)"])
    if targets.return_code != 0:
        # buildifier: disable=print
        print("apt-get indextargets failed:\n{}".format(targets.stderr))
        return None
    mirrors = [line.split("|")[0] for line in targets.stdout.split("\n") if line.endswith("|Debian")]
    if not mirrors:
        # buildifier: disable=print
        print("apt-get knows no mirror of Debian.")
        return None

    # apt gets package lists in this repository, so that it needs neither root nor the machine's lists.
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    rctx.file("apt/sources.list", "deb-src [signed-by={}] {} {} main\n".format(
        keyring,
        mirrors[0],
        source.debian_suite,
    ))
    rctx.file("apt/lists/partial/.keep", "")
    options = [
        "-oDir::Etc::sourcelist=" + str(rctx.path("apt/sources.list")),
        "-oDir::Etc::sourceparts=/dev/null",
        "-oDir::State::lists=" + str(rctx.path("apt/lists")),
        "-oAcquire::Languages=none",
    ]
    for command in [
        ["update"],
        ["source", "--download-only", "--only-source", "--tar-only", source.debian_package],
    ]:
        result = rctx.execute([apt] + options + command, timeout = 900, quiet = True)
        if result.return_code != 0:
            # buildifier: disable=print
            print("apt-get {} failed:\n{}".format(command[0], result.stderr))
            return None
    path = rctx.path(source.debian_file)
    if not path.exists:
        # buildifier: disable=print
        print("apt-get source got no {}; Debian's {} may have another version.".format(
            source.debian_file,
            source.debian_suite,
        ))
        return None
    return path

def _archive(rctx):
    """Returns the path of an archive of the tree: a local one, Debian's or upstream's, in this order."""
    source = TENSORFLOW_SOURCE
    for name, sha256 in [
        (source.debian_file, source.debian_sha256),
        (source.upstream_file, source.upstream_sha256),
    ]:
        path = local_file(rctx, name)
        if path:
            check_sha256(rctx, path, sha256, "TensorFlow source")
            return path
    path = _from_debian(rctx)
    if path:
        check_sha256(rctx, path, source.debian_sha256, "TensorFlow source")
        return path
    result = rctx.download(
        url = source.upstream_url,
        output = source.upstream_file,
        sha256 = source.upstream_sha256,
        allow_fail = True,
    )
    if not result.success:
        fail(("Could not get TensorFlow's source: neither Debian's source package {} nor {} can be reached. Put {} or " +
              "{} into a folder and name the folder in TF_STAGING_DISTDIR.").format(
            source.debian_package,
            source.upstream_url,
            source.debian_file,
            source.upstream_file,
        ))
    return rctx.path(source.upstream_file)

def _tensorflow_source_impl(rctx):
    archive = _archive(rctx)
    execute_or_fail(
        rctx,
        ["tar", "--extract", "--strip-components=1", "--file=" + str(archive)],
        "unpack {}".format(archive),
        timeout = 900,
    )

    # Bazel must not load upstream's packages: our packages read this tree as plain files.
    execute_or_fail(
        rctx,
        ["find", ".", "(", "-name", "BUILD", "-o", "-name", "BUILD.bazel", ")", "-delete"],
        "delete the BUILD files of TensorFlow's source",
    )
    rctx.file("BUILD.bazel", rctx.read(Label("//third_party/tensorflow:source.BUILD")))

tensorflow_source = repository_rule(
    implementation = _tensorflow_source_impl,
    environ = DOWNLOAD_ENVIRON,
    doc = "TensorFlow's source tree as released, from a local archive, Debian's source package, or upstream's tag.",
)

def _series(rctx):
    """Returns the names of the patches, in order. Bazel runs the rule again when a file that it read changes."""
    lines = rctx.read(Label("//patches:series")).split("\n")
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]

def _touched_files(text):
    """Returns the paths of the files that a patch changes."""
    return [line[len("+++ b/"):].split("\t")[0] for line in text.split("\n") if line.startswith("+++ b/")]

def _tensorflow_patched_impl(rctx):
    pristine = rctx.path(Label("@tensorflow_source//:BUILD.bazel")).dirname
    touched = {}
    for name in _series(rctx):
        label = Label("//patches:" + name)
        for path in _touched_files(rctx.read(label)):
            if path not in touched:
                touched[path] = True
                rctx.file(path, rctx.read(str(pristine) + "/" + path), executable = False)
        result = execute_or_fail(
            rctx,
            ["patch", "--strip=1", "--fuzz=0", "--no-backup-if-mismatch", "--input=" + str(rctx.path(label))],
            "apply patches/{}".format(name),
            advice = "See docs/rebasing.md.",
        )
        if "offset" in result.stdout:
            fail("patches/{} applies only at an offset:\n{}\nSee docs/rebasing.md.".format(name, result.stdout))
    rctx.file("BUILD.bazel", rctx.read(Label("//third_party/tensorflow:patched.BUILD")))

tensorflow_patched = repository_rule(
    implementation = _tensorflow_patched_impl,
    doc = "The files that the series touches, and no others, with the series applied without offset or fuzz.",
)
