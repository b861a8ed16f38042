#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel for other Pythons than the default, and tries each: installs it with pinned requirements into
# .venv-VERSION, checks it with the doctor, and runs the example and the tests of what depends on Python.
#
#   ci/other_pythons.sh [VERSION...]   all that are installed on this machine, or those named, as in 3.9 3.10
steps_total=0
source "$(dirname "$0")/steps.sh"

# Where our code meets Python's standard library, its threads, its signals or its C interface.
folders=(api build_info command_line doctor session smart_stage stages stats thread_pools)
promises=(closing faults same_values sessions)

versions=("$@")
if [ $# -eq 0 ]; then
  for version in $supported_pythons; do
    if [ "$version" != "$default_python" ] && find_python "$version" >/dev/null; then
      versions+=("$version")
    fi
  done
  [ ${#versions[@]} -gt 0 ] || die "No other Python is installed."
fi
steps_total=$((4 * ${#versions[@]}))

for version in "${versions[@]}"; do
  step "Building the wheel for Python $version"
  ci/build_wheel.sh "--python=$version"

  step "Installing it into .venv-$version"
  ci/install_wheel.sh

  step "Running the doctor and examples/stage.py"
  "$venv-$version/bin/python" -m tensorflow.staging doctor
  (cd examples && TF_CPP_MIN_LOG_LEVEL=2 "$venv-$version/bin/python" stage.py)

  step "Running the Python tests"
  "$venv-$version/bin/pytest" wheel "${folders[@]/#/tensorflow_staging/python/}" "${promises[@]/#/tests/}"
done
