#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs TensorFlow's own Python tests, and compares each result with the result on the stock wheel.
#
#   ci/upstream_tests.sh quick          runs the files in ci/upstream/quick.txt in .venv; every test that passes on the
#                                       stock wheel must pass
#   ci/upstream_tests.sh pools          does the same, but every session has a stage thread pool for all its runs
#   ci/upstream_tests.sh smart          does the same, but every session has SmartStage, and its stages start by
#                                       themselves; ci/upstream/smart_differences.txt lists and explains what differs
#   ci/upstream_tests.sh variable       does the same with TF_STAGING_SMART_STAGE=1 in the environment, and nothing else:
#                                       no test may differ
#   ci/upstream_tests.sh full [MODE]    runs the files in ci/upstream/wide.txt as well, plain or in one of these modes
#   ci/upstream_tests.sh record         runs all files on the stock wheel, in a temporary virtual environment, and saves
#                                       the results
steps_total=1
source "$(dirname "$0")/steps.sh"

python=$(find_python)
bazel build @tensorflow_source//:BUILD.bazel
external=$(bazel info output_base)/external
source_tree=$external/tensorflow_source
quick=ci/upstream/quick.txt
wide=ci/upstream/wide.txt
run=("$python" ci/upstream/run.py --source="$source_tree" --stock-results=ci/upstream/stock_results.json)

# Runs the files in .venv, with the sessions of a mode: run_in MODE LIST...
run_in() {
  local mode=$1
  shift
  case $mode in
    quick) mode=() ;;
    pools) mode=(--sessions=stage_pools) ;;
    variable) mode=() && export TF_STAGING_SMART_STAGE=1 ;;
    smart) mode=(--sessions=smart_sessions --differences=ci/upstream/smart_differences.txt) ;;
    *) die "'$mode' is no mode; there are quick, pools, smart and variable." ;;
  esac
  "${run[@]}" --python="$venv/bin/python" "${mode[@]}" --list "$@"
}

case ${1:-} in
  quick | pools | smart | variable)
    run_in "$1" "$quick"
    ;;
  full)
    run_in "${2:-quick}" "$quick" "$wide"
    ;;
  record)
    stock=$(mktemp -d)
    trap 'rm -rf "$stock"' EXIT
    "$python" -m venv "$stock"
    install_pinned "$stock/bin/python" third_party/python/requirements.txt ci/requirements.txt
    bazel build @tensorflow_wheel_cpu//:base.whl
    "$stock/bin/python" -m pip install --quiet --no-index --no-deps "$(readlink -f "$external/tensorflow_wheel_cpu/base.whl")"
    "${run[@]}" --python="$stock/bin/python" --write --list "$quick" "$wide"
    ;;
  *)
    die "'${1:-}' is no command. Usage: ci/upstream_tests.sh quick|pools|smart|variable|full [MODE]|record"
    ;;
esac
