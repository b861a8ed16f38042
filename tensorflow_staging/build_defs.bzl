# SPDX-License-Identifier: Apache-2.0
"""How the C++ of this project is compiled, linked and tested: the macros of every BUILD file below.

Each library is two targets: NAME, its code, which ends up in the overlay (//relink), and NAME.headers, its interface.
A test is linked against the shared libraries as they ship, never against second copies of the code: what registers
itself when loaded (ops, kernels, the sessions' observers) exists once in a process.
"""

# The flags that TensorFlow's own wheel was built with (tf.sysconfig.get_compile_flags()), as far as they change
# layouts: without NDEBUG, classes of the base library have other sizes than it thinks.
STAGING_COPTS = [
    "-std=c++17",
    "-O2",
    "-DNDEBUG",
    "-DEIGEN_MAX_ALIGN_BYTES=64",
    "-D_GLIBCXX_USE_CXX11_ABI=1",
    "-fPIC",
]

# TensorFlow's headers are not clean under Debian's default warnings; ours are.
TENSORFLOW_HEADERS = [
    "@tensorflow_patched//:headers",
] + select({
    "//:cuda": ["@tensorflow_wheel_cuda//:headers"],
    "//conditions:default": ["@tensorflow_wheel_cpu//:headers"],
})

# What a program of ours is linked against: the overlay for what it adds, the stock library for the rest. The stock
# library's SONAME is the front's, so the program asks for the front at run time and gets all three in order.
_OVERLAY = "//relink:lib/libtensorflow_cc_staging.so.2"

LINK_INPUTS = [_OVERLAY] + select({
    "//:cuda": [
        "@tensorflow_wheel_cuda//:tensorflow/libtensorflow_cc.so.2",
        "@tensorflow_wheel_cuda//:tensorflow/libtensorflow_framework.so.2",
    ],
    "//conditions:default": [
        "@tensorflow_wheel_cpu//:tensorflow/libtensorflow_cc.so.2",
        "@tensorflow_wheel_cpu//:tensorflow/libtensorflow_framework.so.2",
    ],
})

LINK_OPTS = ["-Wl,--no-as-needed"] + select({
    "//:cuda": [
        "$(location @tensorflow_wheel_cuda//:tensorflow/libtensorflow_cc.so.2)",
        "$(location %s)" % _OVERLAY,
        "$(location @tensorflow_wheel_cuda//:tensorflow/libtensorflow_framework.so.2)",
    ],
    "//conditions:default": [
        "$(location @tensorflow_wheel_cpu//:tensorflow/libtensorflow_cc.so.2)",
        "$(location %s)" % _OVERLAY,
        "$(location @tensorflow_wheel_cpu//:tensorflow/libtensorflow_framework.so.2)",
    ],
})

def _headers(dep):
    """The interface target that belongs to a library's label."""
    if ":" in dep:
        return dep + ".headers"
    return dep + ":" + dep.split("/")[-1] + ".headers"

def staging_cc_library(name, srcs = [], hdrs = [], deps = [], **kwargs):
    """A library of the overlay.

    Args:
      name: the target; NAME.headers is its interface alone.
      srcs: source files.
      hdrs: headers that others include.
      deps: staging_cc_library or staging_cc_proto targets.
      alwayslink: for code that registers itself when loaded.
      **kwargs: passed to cc_library.
    """
    native.cc_library(
        name = name + ".headers",
        hdrs = hdrs,
        deps = [_headers(dep) for dep in deps] + TENSORFLOW_HEADERS,
        **kwargs
    )
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = STAGING_COPTS,
        linkstatic = True,
        # All of it belongs into the overlay, whether the overlay itself calls it or not.
        alwayslink = True,
        deps = deps + TENSORFLOW_HEADERS,
        **kwargs
    )

def staging_cc_proto(name, src, **kwargs):
    """The C++ of one .proto file, made by the protoc that matches TensorFlow's protobuf.

    Args:
      name: the library, to be named in deps as any staging_cc_library.
      src: the .proto file. It may import TensorFlow's.
      **kwargs: passed to staging_cc_library.
    """
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src] + select({
            "//:cuda": ["@tensorflow_wheel_cuda//:protos"],
            "//conditions:default": ["@tensorflow_wheel_cpu//:protos"],
        }) + ["@protoc//:protos"],
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = " ".join([
            "$(location @protoc//:protoc/data/bin/protoc)",
            "--proto_path=.",
            "--proto_path=external/%s/tensorflow/include" % "$(TENSORFLOW_WHEEL)",
            "--proto_path=external/protoc/protoc/data/include",
            "--cpp_out=$(GENDIR)",
            "$(location %s)" % src,
        ]),
        toolchains = ["//:tensorflow_wheel_variable"],
        visibility = ["//visibility:private"],
        tools = ["@protoc//:protoc/data/bin/protoc"],
    )
    staging_cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        **kwargs
    )

def staging_cc_test(name, srcs, deps = [], size = "small", data = [], copts = [], linkopts = [], **kwargs):
    """A GoogleTest over the libraries that ship.

    Args:
      name: the target.
      srcs: source files.
      deps: staging_cc_library targets whose interface the test uses.
      size: Bazel's test size.
      data: further run-time files.
      copts: further compiler flags.
      linkopts: further linker flags.
      **kwargs: passed to cc_test.
    """
    up = "/".join([".."] * len(native.package_name().split("/")))
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        additional_linker_inputs = LINK_INPUTS,
        copts = STAGING_COPTS + copts,
        data = data + ["//relink:runtime"],
        deps = [_headers(dep) for dep in deps] + TENSORFLOW_HEADERS + ["@googletest//:gtest_main"],
        linkopts = LINK_OPTS + ["-Wl,-rpath,$$ORIGIN/%s/relink/lib" % up] + linkopts,
        **kwargs
    )

def staging_pybind_extension(name, srcs, deps = [], **kwargs):
    """A Python extension module NAME.so over the libraries that ship.

    Args:
      name: the module's name.
      srcs: source files.
      deps: staging_cc_library targets whose interface the module uses.
      **kwargs: passed to cc_binary.
    """

    # Where the wheel puts the libraries, seen from the module.
    up = "/".join([".."] * len(native.package_name().split("/")))
    native.cc_binary(
        name = name + ".so",
        srcs = srcs,
        additional_linker_inputs = LINK_INPUTS,
        copts = STAGING_COPTS + ["-fvisibility=hidden"],
        linkshared = True,
        deps = [_headers(dep) for dep in deps] + TENSORFLOW_HEADERS + [
            "@pybind11//:pybind11",
            "@python//:headers",
        ],
        linkopts = LINK_OPTS + ["-Wl,-rpath,$$ORIGIN/%s/tensorflow" % up],
        **kwargs
    )
