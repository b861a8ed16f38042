# SPDX-License-Identifier: Apache-2.0
"""A rule that defines a make variable with the name of the base wheel's repository."""

def _impl(ctx):
    return [platform_common.TemplateVariableInfo({"TENSORFLOW_WHEEL": ctx.attr.repository})]

tensorflow_wheel_variable = rule(
    implementation = _impl,
    attrs = {"repository": attr.string(mandatory = True)},
    doc = "Defines $(TENSORFLOW_WHEEL) for genrules.",
)
