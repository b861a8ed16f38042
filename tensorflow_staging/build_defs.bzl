# SPDX-License-Identifier: Apache-2.0
"""The macros with which the BUILD files of this project compile, link and test C++.

Each library has three targets: NAME is its code, which ends up in the overlay (//relink), NAME.headers is its interface,
and NAME.sources are the files of both and of what they depend on, for the plugin (//tensorflow_staging/plugin). A test links against the shared libraries that the wheel ships, never against a second copy of the code,
because code that registers itself when it is loaded (ops, kernels, session observers) must exist once in a process.
"""

# The flags of TensorFlow's own wheel (tf.sysconfig.get_compile_flags()) that change the layout of classes. Without
# NDEBUG, for example, our code would assume other sizes of the base library's classes than the library itself.
STAGING_COPTS = [
    "-std=c++17",
    "-O2",
    "-DNDEBUG",
    "-DEIGEN_MAX_ALIGN_BYTES=64",
    "-D_GLIBCXX_USE_CXX11_ABI=1",
    "-fPIC",
]

# Warnings of our own code are errors, so that there are none; --config=warnings allows them.
STAGING_WARNINGS = [
    "-Wall",
    "-Wextra",
    # TensorFlow's interfaces have parameters that an implementation does not need.
    "-Wno-unused-parameter",
    # TensorFlow's and our aggregates have members with defaults, which an initializer leaves out.
    "-Wno-missing-field-initializers",
] + select({
    "//:warnings": [],
    "//conditions:default": ["-Werror"],
})

# TensorFlow's headers. Unlike ours, they are not free of warnings under Debian's default flags.
TENSORFLOW_HEADERS = [
    "@tensorflow_patched//:headers",
] + select({
    "//:cuda": ["@tensorflow_wheel_cuda//:headers"],
    "//conditions:default": ["@tensorflow_wheel_cpu//:headers"],
})

# TensorFlow's headers, read before a file begins: much faster than by the file itself. The sanitizers' flags differ from file to
# file. Their builds therefore go without, and fail if a file lacks one of the includes that it needs.
_PRECOMPILED = select({
    "//:asan": [],
    "//:tsan": [],
    "//conditions:default": ["//tensorflow_staging/precompiled:tensorflow_headers"],
})

_INCLUDE_PRECOMPILED = select({
    "//:asan": [],
    "//:tsan": [],
    "//conditions:default": ["-include", "tensorflow_staging/precompiled/tensorflow_headers.h"],
})

# Our programs link against the overlay for the symbols that it adds, and against the stock library for all others. The
# SONAME of the stock library is the front's name, so a program loads the front at run time, and with it all three
# libraries in order.
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

# The same without the overlay.
FRAMEWORK_INPUTS = select({
    "//:cuda": ["@tensorflow_wheel_cuda//:tensorflow/libtensorflow_framework.so.2"],
    "//conditions:default": ["@tensorflow_wheel_cpu//:tensorflow/libtensorflow_framework.so.2"],
})

FRAMEWORK_OPTS = select({
    "//:cuda": ["$(location @tensorflow_wheel_cuda//:tensorflow/libtensorflow_framework.so.2)"],
    "//conditions:default": ["$(location @tensorflow_wheel_cpu//:tensorflow/libtensorflow_framework.so.2)"],
})

# What a test contains under --config=asan and --config=tsan.
_SANITIZER = select({
    "//:asan": ["//tensorflow_staging/core/testing/sanitizers:address_sanitizer"],
    "//:tsan": ["//tensorflow_staging/core/testing/sanitizers:thread_sanitizer"],
    "//conditions:default": [],
})

def _whole(dep):
    """Returns the label of a library with its name."""
    return dep if ":" in dep else dep + ":" + dep.split("/")[-1]

def _headers(dep):
    """Returns the label of a library's interface target."""
    return _whole(dep) + ".headers"

def staging_sources(deps):
    """Returns the labels of the source files of libraries.

    Args:
      deps: staging_cc_library or staging_cc_proto targets.
    """
    return [_whole(dep) + ".sources" for dep in deps]

def staging_cc_library(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        sources = None,
        warnings = STAGING_WARNINGS,
        **kwargs):
    """Declares a library of the overlay.

    Args:
      name: The target. NAME.headers is its interface, and NAME.sources are its files.
      srcs: Source files.
      hdrs: Headers that other libraries include.
      deps: staging_cc_library or staging_cc_proto targets.
      sources: The files of NAME.sources, if these are not srcs and hdrs.
      warnings: Compiler flags for the warnings about srcs.
      **kwargs: Passed to cc_library.
    """
    native.filegroup(
        name = name + ".sources",
        srcs = (srcs + hdrs if sources == None else sources) + staging_sources(deps),
        **kwargs
    )
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
        copts = STAGING_COPTS + warnings + _INCLUDE_PRECOMPILED,
        linkstatic = True,
        # The overlay contains all of the code, even the parts that it does not call itself.
        alwayslink = True,
        deps = deps + TENSORFLOW_HEADERS + _PRECOMPILED,
        **kwargs
    )

def staging_cc_proto(name, src, **kwargs):
    """Generates the C++ of one .proto file, with the protoc that matches TensorFlow's protobuf.

    Args:
      name: The library. It can be listed in deps like a staging_cc_library.
      src: The .proto file. It may import TensorFlow's .proto files.
      **kwargs: Passed to staging_cc_library.
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
        # The plugin makes other classes of it.
        sources = [],
        # protoc wrote it.
        warnings = [],
        **kwargs
    )

def staging_cc_test_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """Declares a library that tests contain. It is no part of the overlay.

    Args:
      name: The target, for the libraries of a staging_cc_test.
      srcs: Source files.
      hdrs: Headers that tests include.
      deps: staging_cc_library targets whose interfaces the library uses.
      **kwargs: Passed to cc_library.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = srcs,
        hdrs = hdrs,
        copts = STAGING_COPTS + STAGING_WARNINGS + _INCLUDE_PRECOMPILED,
        linkstatic = True,
        # What it registers counts, even if no test calls it.
        alwayslink = True,
        deps = [_headers(dep) for dep in deps] + TENSORFLOW_HEADERS + _PRECOMPILED,
        **kwargs
    )

def staging_cc_test(
        name,
        srcs,
        deps = [],
        libraries = [],
        size = "small",
        data = [],
        copts = [],
        linkopts = [],
        precompiled = True,
        **kwargs):
    """Declares a GoogleTest that links against the shared libraries of the wheel.

    Args:
      name: The target.
      srcs: Source files.
      deps: staging_cc_library targets whose interfaces the test uses.
      libraries: staging_cc_test_library targets that the test contains.
      size: Bazel's test size.
      data: Further run-time files.
      copts: Further compiler flags.
      linkopts: Further linker flags.
      precompiled: Whether srcs may begin with TensorFlow's headers: not if they define what changes these.
      **kwargs: Passed to cc_test.
    """
    up = "/".join([".."] * len(native.package_name().split("/")))
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        additional_linker_inputs = LINK_INPUTS,
        copts = STAGING_COPTS + STAGING_WARNINGS + copts + (_INCLUDE_PRECOMPILED if precompiled else []),
        data = data + ["//relink:runtime"],
        deps = [_headers(dep) for dep in deps] + libraries + TENSORFLOW_HEADERS + (_PRECOMPILED if precompiled else []) +
               _SANITIZER + ["@googletest//:gtest_main"],
        linkopts = LINK_OPTS + ["-Wl,-rpath,$$ORIGIN/%s/relink/lib" % up] + linkopts,
        **kwargs
    )

def staging_cc_scheduled_test(name, srcs, engine, deps = [], protos = [], size = "medium", **kwargs):
    """Declares a GoogleTest in which a seed decides which thread goes on: core/testing/scheduled.

    It compiles files of the overlay once more, with simulated threads, and links against TensorFlow without the overlay.

    Args:
      name: The target.
      srcs: Source files of the test.
      engine: Source files of the overlay.
      deps: staging_cc_library targets whose interfaces these use.
      protos: staging_cc_proto targets that these use.
      size: Bazel's test size.
      **kwargs: Passed to cc_test.
    """
    up = "/".join([".."] * len(native.package_name().split("/")))
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs + engine,
        additional_linker_inputs = FRAMEWORK_INPUTS,
        copts = STAGING_COPTS + STAGING_WARNINGS + _INCLUDE_PRECOMPILED + [
            "-include",
            "tensorflow_staging/core/testing/scheduled/in_place_of_threads.h",
        ],
        data = ["//relink:framework"],
        deps = [_headers(dep) for dep in deps] + protos + TENSORFLOW_HEADERS + _PRECOMPILED + [
            "//tensorflow_staging/core/testing/scheduled",
            "@googletest//:gtest_main",
        ],
        linkopts = ["-Wl,--no-as-needed"] + FRAMEWORK_OPTS + ["-Wl,-rpath,$$ORIGIN/%s/relink/lib" % up],
        linkstatic = True,
        **kwargs
    )

def staging_pybind_extension(name, srcs, deps = [], **kwargs):
    """Declares a Python extension module NAME.so that links against the shared libraries of the wheel.

    Args:
      name: The module's name.
      srcs: Source files.
      deps: staging_cc_library targets whose interfaces the module uses.
      **kwargs: Passed to cc_binary.
    """

    # The path from the module's folder to the root of the wheel.
    up = "/".join([".."] * len(native.package_name().split("/")))
    native.cc_binary(
        name = name + ".so",
        srcs = srcs,
        additional_linker_inputs = LINK_INPUTS,
        copts = STAGING_COPTS + STAGING_WARNINGS + ["-fvisibility=hidden"],
        linkshared = True,
        deps = [_headers(dep) for dep in deps] + TENSORFLOW_HEADERS + [
            "@pybind11//:pybind11",
            "@python//:headers",
        ],
        linkopts = LINK_OPTS + ["-Wl,-rpath,$$ORIGIN/%s/tensorflow" % up],
        **kwargs
    )
