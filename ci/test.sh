#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests of the fork: checks the patch series, runs the C++ tests with Bazel, and runs TensorFlow's own Python tests
# and ours against the installed wheel. Builds the plugin for the latest TensorFlow, and runs those of its tests that say
# most in the shortest time. The last lines of the output are pytest's summary. Passes its arguments to our pytest run.
steps_total=10
source "$(dirname "$0")/steps.sh"

step "Installing the packages that the build needs"
ci/install_deps.sh

step "Fetching TensorFlow's source and checking the patch series against it"
bazel build @tensorflow_source//:BUILD.bazel
ci/patches.sh check "$(bazel info output_base)/external/tensorflow_source"

step "Building and running the C++ tests"
bazel test //...

step "Building the wheel into dist/"
ci/build_wheel.sh

step "Installing the wheel into .venv, and checking the format of the code"
ci/install_wheel.sh
ci/format.sh --check

step "Installing a browser for the tests of the HTML report"
ci/install_browser.sh || echo "Without a browser, pytest skips these tests; the reason is above."

step "Running TensorFlow's own tests against the installed wheel"
ci/upstream_tests.sh quick

step "Running them with every run on a stage thread pool"
ci/upstream_tests.sh pools

step "Building the plugin for the latest TensorFlow, and running its tests of steps, Keras 3, backups and sessions"
ci/build_plugin.sh --test -k "(steps_test or keras_test or backup_test or package_test or sessions_test) and not fork_"

step "Running the Python tests against the installed wheel"
# On two cores: many tests wait for a process or for an event.
"$venv/bin/pytest" -n 3 --dist loadfile --no-loadscope-reorder "$@"
