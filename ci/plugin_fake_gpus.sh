#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fork's cases of GPUs beside the official TensorFlow, on fake GPUs. These cannot run CUDA's kernels, so
# TensorFlow is its build without them, tensorflow-cpu, which the plugin's library serves as well.
steps_total=2
source "$(dirname "$0")/steps.sh"

tensorflow=$(ls plugin/requirements | sort --version-sort | tail -n 1)
ci/build_plugin.sh "--tensorflow=$tensorflow"
python=$root/.venv-plugin/$tensorflow-$default_python/bin/python

step "Fetching TensorFlow $tensorflow without CUDA"
without_cuda=$(mktemp -d)
trap 'rm -rf "$without_cuda"' EXIT
"$python" -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary=:all: --no-deps \
  --target "$without_cuda" --requirement plugin/requirements_without_cuda.txt

step "Running the cases of GPUs"
cd plugin
PYTHONPATH=$without_cuda "$python" -B -m pytest -c tests/pytest.ini -p no:cacheprovider tests/fork_cases_test.py -k gpu
