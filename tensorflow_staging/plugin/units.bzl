# SPDX-License-Identifier: Apache-2.0
"""Compiles many files as few units: a compiler spends most of its time on what each file includes of TensorFlow."""

load("//tensorflow_staging:build_defs.bzl", "STAGING_COPTS", "STAGING_WARNINGS")

def _units_impl(ctx):
    sources = sorted([file.short_path for file in ctx.files.srcs if file.extension == "cc"])
    count = ctx.attr.count
    units = []
    for index in range(count):
        share = sources[len(sources) * index // count:len(sources) * (index + 1) // count]
        unit = ctx.actions.declare_file("{}_{}.cc".format(ctx.label.name, index))
        ctx.actions.write(unit, "".join(["#include \"{}\"\n".format(source) for source in share]))
        units.append(unit)
    return [DefaultInfo(files = depset(units))]

_units = rule(
    implementation = _units_impl,
    attrs = {
        "count": attr.int(mandatory = True),
        "srcs": attr.label_list(allow_files = True, mandatory = True),
    },
    doc = "Writes C++ files, each of which includes its share of those in srcs.",
)

def plugin_library(name, srcs, count = 1, hdrs = [], deps = []):
    """Declares a library of the plugin. A name in an anonymous namespace can be defined once in a unit.

    Args:
      name: The target.
      srcs: Source files, and headers.
      count: In how many units these are compiled.
      hdrs: Files of which they may include the headers.
      deps: cc_library targets.
    """
    _units(
        name = name + "_unit",
        srcs = srcs,
        count = count,
    )
    native.cc_library(
        name = name,
        srcs = [name + "_unit"],
        copts = STAGING_COPTS + STAGING_WARNINGS + [
            # The older names of Abseil's Status are the ones that 2.14 has.
            "-Wno-deprecated-declarations",
            "-fvisibility=hidden",
            # Last: what TensorFlow's headers include and some wheels do not have.
            "-idirafter",
            native.package_name() + "/in_place_of_llvm",
        ],
        linkstatic = True,
        tags = ["manual"],
        textual_hdrs = srcs + hdrs,
        deps = deps + ["@tensorflow_installed//:headers"],
        # It registers ops, kernels and passes, which nothing calls.
        alwayslink = True,
    )
