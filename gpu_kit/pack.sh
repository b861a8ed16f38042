#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs the kit for a machine with an NVIDIA GPU and without a network into dist/gpu-kit (docs/gpu.md):
#
#   gpu_kit/pack.sh [--chip sm_90]... [--stand-in NAME]... [--level 19] [WHEEL]
#
# WHEEL is a CUDA wheel with machine code for the chips, by default dist/*.whl. What stays as it is from commit to commit is
# packed once, into dist/gpu-kit-base, which needs a network and about 6 GB while it runs; the rest takes seconds. --level says
# how hard zstd tries: 3 is quicker than the default, and packs a tenth less.
steps_total=3
source "$(dirname "$0")/../ci/steps.sh"

usage="gpu_kit/pack.sh [--chip sm_90]... [--stand-in NAME]... [--level 19] [WHEEL]"
options=()
wheel=
while [ $# -gt 0 ]; do
  case $1 in
    --chip | --stand-in | --level) options+=("$1" "${2:-}"); shift 2 || die "$1 needs a value." ;;
    -*) die "unknown option $1: $usage" ;;
    *) wheel=$1; shift ;;
  esac
done
wheels=(dist/*.whl)
wheel=${wheel:-${wheels[0]}}
[ -f "$wheel" ] || die "There is no $wheel: build it with ci/build_wheel.sh --config=cuda --chip=sm_90."
python=$(find_python)
base=dist/gpu-kit-base/$("$python" gpu_kit/base_layer.py --key "${options[@]}")

pack_base() {
  rm -rf "$base"
  mkdir -p dist/gpu-kit-base
  stage=$(mktemp --directory "$root/dist/gpu-kit-stage.XXXX")
  trap 'rm -rf "$stage"' EXIT

  step "Installing the pinned packages and CUDA's libraries, about 2 GB"
  "$python" -m venv "$stage/venv"
  install_pinned "$stage/venv/bin/python" third_party/python/requirements.txt ci/requirements.txt gpu_kit/requirements.txt
  "$stage/venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-index --no-deps --no-compile "$wheel"

  step "Packing what stays as it is"
  "$stage/venv/bin/python" gpu_kit/base_layer.py --packages="$stage/venv/lib/python3.11/site-packages" --wheel="$wheel" \
    --out="$base" "${options[@]}"
  rm -rf "$stage"
}

pack() {
  step "Packing what the commit changes"
  "$python" gpu_kit/pack.py --base="$base" --wheel="$wheel" --kit=dist/gpu-kit
}

[ -f "$base/base.json" ] || pack_base
status=0
pack || status=$?
# The wheel differs too much from the one in the base.
if [ "$status" -eq 3 ]; then
  steps_total=6
  pack_base
  pack
elif [ "$status" -ne 0 ]; then
  exit "$status"
fi
