# SPDX-License-Identifier: Apache-2.0
"""A rule that expands a template."""

def _expand_impl(ctx):
    ctx.actions.expand_template(
        template = ctx.file.template,
        output = ctx.outputs.out,
        substitutions = ctx.attr.substitutions,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

expand = rule(
    implementation = _expand_impl,
    attrs = {
        "template": attr.label(mandatory = True, allow_single_file = True),
        "out": attr.output(mandatory = True),
        "substitutions": attr.string_dict(mandatory = True),
    },
    doc = "Writes `out` from `template`, with each key of `substitutions` replaced.",
)
