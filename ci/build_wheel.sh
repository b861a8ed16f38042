#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel into dist/. --python=3.10 builds it for that Python; all other arguments are Bazel's, as in
# ci/build_wheel.sh --config=cuda
#
# --config=cuda --chip=sm_90 compiles the code for GPUs for that chip, in some minutes; the option can be given several
# times. Without it, the wheel has the code of the official one (docs/gpu.md).
steps_total=2
source "$(dirname "$0")/steps.sh"

options=()
chips=()
for argument; do
  case $argument in
    --python=*)
      version=${argument#*=}
      [[ " $supported_pythons " = *" $version "* ]] ||
        die "$argument: TensorFlow has official wheels only for Python ${supported_pythons// /, }."
      PYTHON_BIN_PATH=$(find_python "$version") || die "$argument: nothing was built."
      export PYTHON_BIN_PATH
      ;;
    --chip=*)
      [[ $argument =~ ^--chip=sm_[0-9]+$ ]] || die "$argument is no chip: write, for example, --chip=sm_90."
      chips+=("${argument#*=}")
      ;;
    *) options+=("$argument") ;;
  esac
done

if [ ${#chips[@]} -gt 0 ]; then
  [[ " ${options[*]} " = *" --config=cuda "* ]] || die "--chip is for wheels with CUDA: add --config=cuda."
  options+=(--define=native_code=true "--define=chips=$(IFS=, && echo "${chips[*]}")")
fi

step "Installing the packages that the build needs"
ci/install_deps.sh

step "Building the wheel with Bazel"
bazel build //:wheel "${options[@]}"

mkdir -p dist
rm -f dist/*.whl
cp bazel-bin/wheel/wheel.dist/*.whl dist/
chmod 644 dist/*.whl
ls -l dist/*.whl
