#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Goes from a clean clone to training with stages, in both ways that the project comes in. Builds the plugin for the latest
# official TensorFlow, and trains a Keras model beside it without and with SmartStage. Then builds and installs the fork,
# runs the specification's example on a CSV file, and compares the speed of a training loop with and without a stage.
steps_total=7
source "$(dirname "$0")/steps.sh"

step "Installing the packages that the build needs"
ci/install_deps.sh

tensorflow=$(ls plugin/requirements | sort --version-sort | tail -n 1)
step "Building the plugin for TensorFlow $tensorflow, and installing it beside that TensorFlow"
ci/build_plugin.sh "--tensorflow=$tensorflow"

export TF_CPP_MIN_LOG_LEVEL=2
step "Training a Keras model that looks up words, without and with SmartStage"
".venv-plugin/$tensorflow-$default_python/bin/python" -W ignore examples/keras_fit.py 2>/dev/null

step "Building the fork's wheel into dist/"
ci/build_wheel.sh

step "Installing the wheel into .venv"
ci/install_wheel.sh

step "Running examples/stage.py on examples/1.txt"
(cd examples && "$venv/bin/python" stage.py 2>/dev/null)

step "Comparing steps per second with and without the stage"
"$venv/bin/python" -W ignore ci/demo/compare.py
