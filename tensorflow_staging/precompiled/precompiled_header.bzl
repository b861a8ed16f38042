# SPDX-License-Identifier: Apache-2.0
"""A header that the compiler reads once, and not again for each file: most of TensorFlow's headers take seconds."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include \"%s\"\n" % file for file in ctx.attr.headers]))
    precompiled = ctx.actions.declare_file(header.basename + ".gch")

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context

    # The compiler uses it only where the flags are the same; otherwise it reads the header itself.
    variables = cc_common.create_compile_variables(
        cc_toolchain = toolchain,
        feature_configuration = features,
        include_directories = context.includes,
        output_file = precompiled.path,
        preprocessor_defines = context.defines,
        quote_include_directories = context.quote_includes,
        source_file = header.path,
        system_include_directories = context.system_includes,
        use_pic = True,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
    )
    flags = cc_common.get_memory_inefficient_command_line(
        action_name = CPP_COMPILE_ACTION_NAME,
        feature_configuration = features,
        variables = variables,
    )
    ctx.actions.run(
        arguments = ["-x", "c++-header"] + flags,
        env = cc_common.get_environment_variables(
            action_name = CPP_COMPILE_ACTION_NAME,
            feature_configuration = features,
            variables = variables,
        ),
        executable = cc_common.get_tool_for_action(
            action_name = CPP_COMPILE_ACTION_NAME,
            feature_configuration = features,
        ),
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        mnemonic = "PrecompileHeader",
        outputs = [precompiled],
        progress_message = "Precompiling %s" % header.short_path,
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([header, precompiled])))]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(doc = "The flags of the files that include it."),
        "deps": attr.label_list(doc = "The libraries that have the headers.", providers = [CcInfo]),
        "headers": attr.string_list(doc = "The paths that it includes, in this order."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = "Precompiles NAME.h, which includes other headers. A target that depends on it may have the flag -include PACKAGE/NAME.h.",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
