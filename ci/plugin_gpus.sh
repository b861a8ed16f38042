#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tries the plugin beside the latest official TensorFlow on the GPUs of this machine: runs the parts that gpu_kit/
# has for it (docs/gpu.md), in an environment into which pip installs CUDA's libraries, about 2.8 GB. So only NVIDIA's
# driver has to be there. The report is dist/gpu_kit/report.md.
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

if [ -e /dev/nvidia0 ] || [ "$rehearse" ]; then
  device=cpu
  if [ -z "$rehearse" ]; then
    device=gpu
    step "Installing CUDA's libraries"
    install_pinned "$python" plugin/requirements_cuda.txt
  fi
  step "Running the parts of the kit on the $device"
  "$python" -s gpu_kit/run_kit.py --device "$device" --seconds 1800 --stretch 4
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
