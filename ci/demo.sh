#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Goes from a clean clone to a staged training loop: builds and installs the wheel, runs the specification's example on a
# CSV file, and compares the speed of a training loop with and without a stage.
steps_total=5
source "$(dirname "$0")/steps.sh"

step "Installing the packages that the build needs"
ci/install_deps.sh

step "Building the wheel into dist/"
ci/build_wheel.sh

step "Installing the wheel into .venv"
ci/install_wheel.sh

export TF_CPP_MIN_LOG_LEVEL=2
step "Running examples/stage.py on examples/1.txt"
(cd examples && "$venv/bin/python" stage.py 2>/dev/null)

step "Comparing steps per second with and without the stage"
"$venv/bin/python" -W ignore ci/demo/compare.py
