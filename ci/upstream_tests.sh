#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TensorFlow's own Python tests against the installed wheel, compared test by test with what the stock wheel gives.
#
#   ci/upstream_tests.sh quick    runs ci/upstream/quick.txt in .venv; a test that passes on the stock wheel must pass
#   ci/upstream_tests.sh pools    the same, every local session having a stage thread pool and every run in it taking it
#   ci/upstream_tests.sh record   writes the stock wheel's results anew, in a virtual environment of its own
steps_total=1
source "$(dirname "$0")/steps.sh"

python=$(find_python) || die "Python 3.11 was not found."
bazel build @tensorflow_source//:BUILD.bazel
external=$(bazel info output_base)/external
source_tree=$external/tensorflow_source
run=("$python" ci/upstream/run.py --source="$source_tree" --list=ci/upstream/quick.txt
  --record=ci/upstream/stock_results.json)

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
    die "Say what to do: ci/upstream_tests.sh quick, pools or record."
    ;;
esac
