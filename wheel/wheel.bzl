# SPDX-License-Identifier: Apache-2.0
"""The rule that builds the wheel: it lists the files to add to the base wheel, then runs the two steps."""

def _folder_of(file, suffix):
    if not file.path.endswith(suffix):
        fail("{} does not end with {}".format(file.path, suffix))
    return file.path[:-len(suffix)]

def _python_run(ctx, script, **kwargs):
    """Runs one of the tools in this folder with the Python for which the wheel is built."""
    arguments = kwargs.pop("arguments")
    inputs = kwargs.pop("inputs")
    ctx.actions.run(
        executable = ctx.executable._python,
        arguments = ["-B", "-s", script.path] + arguments,
        inputs = depset([script] + ctx.files._tools, transitive = [inputs]),
        use_default_shell_env = True,
        **kwargs
    )

def _wheel_impl(ctx):
    lines = []
    sources = []
    for target, destination in ctx.attr.files.items():
        file = target.files.to_list()[0]
        lines.append(destination + "\t" + file.path)
        sources.append(file)
    for target, prefixes in ctx.attr.trees.items():
        strip, into = prefixes.split("=")
        for file in target.files.to_list():
            path = file.short_path
            if not path.startswith(strip):
                fail("{} is not below {}".format(path, strip))
            lines.append(into + path[len(strip):] + "\t" + file.path)
            sources.append(file)
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "\n".join(lines) + "\n")

    generated = ctx.actions.declare_directory(ctx.label.name + ".generated")
    base_folder = _folder_of(ctx.file.base_wheel, "/base.whl")
    source_folder = _folder_of(ctx.file.source_root, "/BUILD.bazel")
    _python_run(
        ctx,
        ctx.file._generate,
        inputs = depset(
            [manifest, ctx.file.site_packages, ctx.file.source_root] + sources,
            transitive = [ctx.attr.base_package.files, ctx.attr.api_generator.files, ctx.attr.api_lists.files],
        ),
        outputs = [generated],
        arguments = [
            "--base=" + base_folder,
            "--source=" + source_folder,
            "--api_lists=" + ctx.files.api_lists[0].dirname,
            "--manifest=" + manifest.path,
            "--default_api_version=" + ctx.attr.default_api_version,
            "--site_packages=" + _folder_of(ctx.file.site_packages, ".stamp"),
            "--out=" + generated.path,
        ],
        mnemonic = "GeneratePythonApi",
        progress_message = "Generating TensorFlow's Python API",
    )

    wheel = ctx.actions.declare_directory(ctx.label.name + ".dist")
    _python_run(
        ctx,
        ctx.file._assemble,
        inputs = depset([manifest, generated, ctx.file.base_wheel] + ctx.files.native_code + sources),
        outputs = [wheel],
        arguments = [
            "--base_wheel=" + ctx.file.base_wheel.path,
            "--manifest=" + manifest.path,
            "--generated=" + generated.path,
            "--version=" + ctx.attr.version,
            "--out=" + wheel.path,
        ] + ["--contains=" + each for each in ctx.attr.contains] + ["--native_code=" + each.path for each in ctx.files.native_code],
        mnemonic = "AssembleWheel",
        progress_message = "Assembling the wheel",
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

tensorflow_wheel_package = rule(
    implementation = _wheel_impl,
    attrs = {
        "base_wheel": attr.label(mandatory = True, allow_single_file = True, doc = "the official wheel, packed"),
        "base_package": attr.label(mandatory = True, doc = "the official wheel's package, unpacked"),
        "native_code": attr.label(allow_single_file = True, doc = "a zip file with libraries that replace those of the official wheel, because their GPU code is for other chips"),
        "source_root": attr.label(mandatory = True, allow_single_file = True, doc = "a file in the root of TensorFlow's source tree"),
        "api_generator": attr.label(mandatory = True, doc = "upstream's API generator and its templates"),
        "api_lists": attr.label(mandatory = True, doc = "the lists of the API's packages, all in one folder"),
        "site_packages": attr.label(mandatory = True, allow_single_file = True, doc = "FOLDER.stamp, where FOLDER has the packages that TensorFlow imports"),
        "files": attr.label_keyed_string_dict(allow_files = True, doc = "single files: label -> path in the wheel"),
        "trees": attr.label_keyed_string_dict(allow_files = True, doc = "groups of files: label -> 'prefix to strip=prefix in the wheel'"),
        "contains": attr.string_list(doc = "the packages whose code is in the wheel: 'NAME==VERSION|SHA256|LICENCE|CONTENTS'"),
        "version": attr.string(mandatory = True),
        "default_api_version": attr.string(mandatory = True, values = ["1", "2"], doc = "the root that `import tensorflow` gives"),
        "_python": attr.label(default = "@python//:python3", allow_single_file = True, executable = True, cfg = "host"),
        "_generate": attr.label(default = ":generate_python.py", allow_single_file = True),
        "_assemble": attr.label(default = ":assemble.py", allow_single_file = True),
        "_tools": attr.label(default = ":tools"),
    },
    doc = "Builds a folder NAME.dist with the wheel. The wheel's name has the platform tag that its libraries need.",
)

def python_protos(name, srcs):
    """Generates the Python of patched .proto files, with the protoc that matches TensorFlow's protobuf.

    Args:
      name: The filegroup of the generated files. Below protos/ they have the same paths as upstream's.
      srcs: A dict from the label of each .proto file to its path in the source tree.
    """
    outs = []
    for index, (label, path) in enumerate(srcs.items()):
        out = "protos/" + path.replace(".proto", "_pb2.py")
        outs.append(out)
        native.genrule(
            name = "%s_%d" % (name, index),
            srcs = srcs.keys() + select({
                "//:cuda": ["@tensorflow_wheel_cuda//:protos"],
                "//conditions:default": ["@tensorflow_wheel_cpu//:protos"],
            }) + ["@protoc//:protos"],
            outs = [out],
            # protoc finds the patched files first, and the other files in the base wheel.
            cmd = " ".join([
                "$(location @protoc//:protoc/data/bin/protoc)",
                "--proto_path=external/tensorflow_patched",
                "--proto_path=external/$(TENSORFLOW_WHEEL)/tensorflow/include",
                "--proto_path=external/protoc/protoc/data/include",
                "--python_out=$(RULEDIR)/protos",
                path,
            ]),
            toolchains = ["//:tensorflow_wheel_variable"],
            tools = ["@protoc//:protoc/data/bin/protoc"],
        )
    native.filegroup(name = name, srcs = outs)
