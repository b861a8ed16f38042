#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tries the plugin beside the latest official TensorFlow on the GPUs of this machine. pip installs CUDA's libraries, about
# 2.5 GB, so only NVIDIA's driver has to be there. Steps get whole records in order, on two GPUs as well if there are two;
# and it measures what SmartStage gains in Keras's fit, with equal losses.
#
# Without a GPU, it runs the fork's cases of GPUs on fake ones. These cannot run CUDA's kernels, so TensorFlow is its build
# without them, tensorflow-cpu, which the plugin's library serves as well.
#
#   ci/plugin_gpus.sh [--rehearse]   --rehearse tries the programs for real GPUs on the CPU
steps_total=2
source "$(dirname "$0")/steps.sh"

rehearse=
[ "${1:-}" != --rehearse ] || rehearse=yes
tensorflow=$(ls plugin/requirements | sort --version-sort | tail -n 1)
ci/build_plugin.sh "--tensorflow=$tensorflow"
python=$root/.venv-plugin/$tensorflow-$default_python/bin/python

# run PROGRAM ARGUMENT...: runs a program of the fork, for which the plugin is tf.staging.
run() {
  PYTHONPATH=plugin/tests/as_fork TF_API_VERSION=2 TF_USE_LEGACY_KERAS=1 TF_CPP_MIN_LOG_LEVEL=2 "$python" -s "$@"
}

if [ -e /dev/nvidia0 ] || [ "$rehearse" ]; then
  device=cpu
  if [ -z "$rehearse" ]; then
    device=gpu
    step "Installing CUDA's libraries"
    install_pinned "$python" plugin/requirements_cuda.txt
  fi
  step "Running steps and Keras's fit on the $device"
  run gpu_kit/tests/ahead_steps.py "/$device:0"
  if [ -e /dev/nvidia1 ] || [ "$rehearse" ]; then
    run gpu_kit/tests/mirrored_steps.py "/$device:0"
  else
    echo "This machine has one GPU, so MirroredStrategy was not tried."
  fi
  run benchmarks/gpu_ahead.py --device "$device"
else
  step "Fetching TensorFlow $tensorflow without CUDA"
  without_cuda=$(mktemp -d)
  trap 'rm -rf "$without_cuda"' EXIT
  "$python" -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary=:all: --no-deps \
    --target "$without_cuda" --requirement plugin/requirements_without_cuda.txt

  step "Running the cases of GPUs on fake ones"
  cd plugin
  PYTHONPATH=$without_cuda "$python" -B -m pytest -c tests/pytest.ini -p no:cacheprovider tests/fork_cases_test.py -k gpu
fi
