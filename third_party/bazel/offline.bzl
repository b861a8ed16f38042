# SPDX-License-Identifier: Apache-2.0
"""Stubs of the repositories that Bazel 4 would download before it builds any C++.

Bazel 5 and later bring or fetch these repositories themselves, and get no stubs.
"""

_NATIVE_CC = """
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
"""

_STUBS = {
    "rules_cc": {
        "cc/defs.bzl": _NATIVE_CC,
        "cc/BUILD": "",
    },
    "rules_java": {
        "java/defs.bzl": """
java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_runtime_alias = native.java_runtime
java_test = native.java_test
java_toolchain = native.java_toolchain
java_package_configuration = native.java_package_configuration
""",
        "java/BUILD": "",
    },
    "rules_proto": {
        "proto/defs.bzl": """
proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
""",
        "proto/BUILD": "",
    },
    "remote_coverage_tools": {
        "BUILD": """
package(default_visibility = ["//visibility:public"])

filegroup(name = "coverage_report_generator")
""",
    },
}

def _stub_impl(rctx):
    for path, content in _STUBS[rctx.attr.stub].items():
        rctx.file(path, content)
    rctx.file("WORKSPACE", "")

_stub = repository_rule(
    implementation = _stub_impl,
    attrs = {"stub": attr.string(mandatory = True)},
)

def offline_bazel_repositories():
    """Defines the stubs where Bazel is older than 5. Debian's build of 4.2.3 reports no version at all."""
    version = native.bazel_version
    if version and int(version.split(".")[0]) >= 5:
        return
    for name in _STUBS:
        _stub(name = name, stub = name)
