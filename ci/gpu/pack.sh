#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs the kit for a machine with an NVIDIA GPU and without a network into dist/gpu-kit (docs/gpu.md):
#
#   ci/gpu/pack.sh [--chip sm_90]... [--stand-in NAME]... [WHEEL]
#
# WHEEL is a CUDA wheel, by default dist/*.whl. The script needs a network, and about 6 GB in dist/ while it runs. --preset
# says how hard lzma tries: 1 is quicker than the default, 6, and packs a sixth less.
steps_total=3
source "$(dirname "$0")/../steps.sh"

options=()
wheel=
while [ $# -gt 0 ]; do
  case $1 in
    --chip | --stand-in | --preset) options+=("$1" "${2:-}"); shift 2 || die "$1 needs a value." ;;
    -*) die "unknown option $1: ci/gpu/pack.sh [--chip sm_90]... [--stand-in NAME]... [WHEEL]" ;;
    *) wheel=$1; shift ;;
  esac
done
wheels=(dist/*.whl)
wheel=${wheel:-${wheels[0]}}
[ -f "$wheel" ] || die "There is no $wheel: build it with ci/build_wheel.sh --config=cuda."
python=$(find_python)

mkdir -p dist
stage=$(mktemp --directory "$root/dist/gpu-kit-stage.XXXX")
trap 'rm -rf "$stage"' EXIT

step "Installing the pinned packages and CUDA's libraries, about 2 GB"
"$python" -m venv "$stage/venv"
install_pinned "$stage/venv/bin/python" third_party/python/requirements.txt ci/requirements.txt ci/gpu/requirements.txt

step "Installing $wheel"
"$stage/venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-index --no-deps --no-compile "$wheel"

step "Packing"
"$python" ci/gpu/pack.py --packages="$stage/venv/lib/python3.11/site-packages" --kit=dist/gpu-kit "${options[@]}"
