# SPDX-License-Identifier: Apache-2.0
"""Declares TensorFlow's own C++ tests as targets of this project."""

load("//relink/upstream:tests.bzl", "FAIL_ON_STOCK", "UPSTREAM_TESTS")
load("//tensorflow_staging:build_defs.bzl", "staging_cc_test")

def upstream_cc_tests(name, copts, libraries, data):
    """Declares a test for each file of UPSTREAM_TESTS, and a suite of all of them.

    The tests are manual: `bazel test //...` leaves them out, because they take half an hour to compile.

    Args:
      name: The suite.
      copts: Compiler flags of each test.
      libraries: What each test contains.
      data: The files that the tests read.
    """
    tests = []
    for file in UPSTREAM_TESTS:
        test = file[:-len(".cc")].replace("/", "_")
        failing = FAIL_ON_STOCK.get(file, [])
        staging_cc_test(
            name = test,
            size = "medium",
            srcs = ["@tensorflow_source//:tensorflow/" + file],
            args = ["--gtest_filter=-" + ":".join(failing)] if failing else [],
            copts = copts,
            data = data,
            libraries = libraries,
            linkopts = ["-lbenchmark"],
            precompiled = False,
            tags = ["manual"],
        )
        tests.append(test)
    native.test_suite(name = name, tests = tests, tags = ["manual"])
