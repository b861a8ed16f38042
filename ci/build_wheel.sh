#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel into dist/. Passes its arguments to Bazel, as in ci/build_wheel.sh --config=cuda
steps_total=2
source "$(dirname "$0")/steps.sh"

step "Installing the packages that the build needs"
ci/install_deps.sh

step "Building the wheel with Bazel"
bazel build //:wheel "$@"

mkdir -p dist
rm -f dist/*.whl
cp bazel-bin/wheel/wheel.dist/*.whl dist/
chmod 644 dist/*.whl
ls -l dist/*.whl
