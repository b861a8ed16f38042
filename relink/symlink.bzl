# SPDX-License-Identifier: Apache-2.0
"""A rule that gives a file another name without copying it."""

def _symlink_impl(ctx):
    ctx.actions.symlink(output = ctx.outputs.out, target_file = ctx.file.src)
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

symlink = rule(
    implementation = _symlink_impl,
    attrs = {
        "src": attr.label(mandatory = True, allow_single_file = True),
        "out": attr.output(mandatory = True),
    },
    doc = "Makes `out` a symbolic link to `src`.",
)
