#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs the kit for a machine with an NVIDIA GPU and without a network into dist/gpu-kit.tar.gz (docs/gpu.md):
#
#   gpu_kit/pack.sh [--plugin] [--chip sm_90]... [--stand-in NAME]... [WHEEL]
#
# WHEEL is a CUDA wheel with machine code for the chips, by default dist/*.whl; with --plugin, it is the plugin's for the
# latest TensorFlow, by default in dist/plugin. It needs a network, and about 6 GB while it runs, 8 GB for the plugin.
steps_total=2
source "$(dirname "$0")/../ci/steps.sh"

usage="gpu_kit/pack.sh [--plugin] [--chip sm_90]... [--stand-in NAME]... [WHEEL]"
options=()
plugin=
wheel=
while [ $# -gt 0 ]; do
  case $1 in
    --chip | --stand-in) options+=("$1" "${2:-}"); shift 2 || die "$1 needs a value." ;;
    --plugin) plugin=yes; shift ;;
    -*) die "unknown option $1: $usage" ;;
    *) wheel=$1; shift ;;
  esac
done
if [ "$plugin" ]; then
  tensorflow=$(ls plugin/requirements | sort --version-sort | tail -n 1)
  build="ci/build_plugin.sh --tensorflow=$tensorflow"
  wheels=(dist/plugin/tensorflow_staging-"$tensorflow".*-cp"${default_python/./}"-*.whl)
  requirements=("plugin/requirements/$tensorflow/$default_python.txt" plugin/requirements_cuda.txt)
  downloads=3.4
else
  build="ci/build_wheel.sh --config=cuda --chip=sm_90"
  wheels=(dist/*.whl)
  requirements=(third_party/python/requirements.txt ci/requirements.txt gpu_kit/packing/requirements.txt)
  downloads=2
fi
wheel=${wheel:-${wheels[0]}}
[ -f "$wheel" ] || die "There is no $wheel: build it with $build."
python=$(find_python)
mkdir -p dist
stage=$(mktemp --directory "$root/dist/gpu-kit-stage.XXXX")
trap 'rm -rf "$stage"' EXIT

step "Installing the pinned packages and CUDA's libraries, about $downloads GB"
"$python" -m venv "$stage"
install_pinned "$stage/bin/python" "${requirements[@]}"
"$stage/bin/python" -m pip install --disable-pip-version-check --quiet --no-index --no-deps --no-compile "$wheel"

step "Packing"
PYTHONPATH=gpu_kit "$stage/bin/python" gpu_kit/packing/kit_archive.py \
  --packages="$stage/lib/python$default_python/site-packages" --out=dist/gpu-kit.tar.gz "${options[@]}"
