#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel into dist/. --python=3.10 builds it for that Python; all other arguments are Bazel's, as in
# ci/build_wheel.sh --config=cuda
steps_total=2
source "$(dirname "$0")/steps.sh"

options=()
for argument; do
  case $argument in
    --python=*)
      version=${argument#*=}
      [[ " $supported_pythons " = *" $version "* ]] ||
        die "$argument: TensorFlow has official wheels only for Python ${supported_pythons// /, }."
      PYTHON_BIN_PATH=$(find_python "$version") || die "$argument: nothing was built."
      export PYTHON_BIN_PATH
      ;;
    *) options+=("$argument") ;;
  esac
done

step "Installing the packages that the build needs"
ci/install_deps.sh

step "Building the wheel with Bazel"
bazel build //:wheel "${options[@]}"

mkdir -p dist
rm -f dist/*.whl
cp bazel-bin/wheel/wheel.dist/*.whl dist/
chmod 644 dist/*.whl
ls -l dist/*.whl
