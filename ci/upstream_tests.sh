#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs TensorFlow's own Python tests, and compares each result with the result on the stock wheel.
#
#   ci/upstream_tests.sh quick    runs the files in ci/upstream/quick.txt in .venv; every test that passes on the stock
#                                 wheel must pass
#   ci/upstream_tests.sh pools    does the same, but every local session has a stage thread pool that all its runs use
#   ci/upstream_tests.sh record   runs them on the stock wheel, in a temporary virtual environment, and saves the results
steps_total=1
source "$(dirname "$0")/steps.sh"

python=$(find_python) || die "Python 3.11 was not found."
bazel build @tensorflow_source//:BUILD.bazel
external=$(bazel info output_base)/external
source_tree=$external/tensorflow_source
run=("$python" ci/upstream/run.py --source="$source_tree" --list=ci/upstream/quick.txt
  --stock-results=ci/upstream/stock_results.json)

case ${1:-} in
  quick)
    "${run[@]}" --python="$venv/bin/python"
    ;;
  pools)
    "${run[@]}" --python="$venv/bin/python" --stage-pools
    ;;
  record)
    stock=$(mktemp -d)
    trap 'rm -rf "$stock"' EXIT
    "$python" -m venv "$stock"
    install_pinned "$stock/bin/python" third_party/python/requirements.txt ci/requirements.txt
    bazel build @tensorflow_wheel_cpu//:base.whl
    "$stock/bin/python" -m pip install --quiet --no-index --no-deps "$(readlink -f "$external/tensorflow_wheel_cpu/base.whl")"
    "${run[@]}" --python="$stock/bin/python" --write
    ;;
  *)
    die "'${1:-}' is no command. Usage: ci/upstream_tests.sh quick|pools|record"
    ;;
esac
