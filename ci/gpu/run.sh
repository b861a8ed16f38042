#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the kit of pack.sh on a machine with an NVIDIA driver and a GPU; it needs no network, no CUDA and no Python:
#
#   ci/gpu/run.sh [KIT] [REPORT]
#
# KIT is the folder with the pieces, by default dist/gpu-kit; REPORT the file to write, by default KIT/report.md. It
# unpacks into KIT/unpacked, and takes at most GPU_KIT_SECONDS, by default 840.
kit=$(realpath -m "${1:-$(dirname "$0")/../../dist/gpu-kit}")
report=$(realpath -m "${2:-$kit/report.md}")
steps_total=3
source "$(dirname "$0")/../steps.sh"

step "Checking the pieces in $kit"
manifest=$kit/manifest.txt
[ -f "$manifest" ] || die "$kit has no manifest.txt: copy all files that ci/gpu/pack.sh wrote to dist/gpu-kit into one folder, and name it."
title=$(head -1 "$manifest")
[[ $title == "# GPU kit 1:"* ]] || die "$manifest is not of this version of the kit: run the ci/gpu/run.sh of the commit that packed it. It begins: $title"
echo "${title#\# }"
mapfile -t names < <(sed -n 's/^[0-9a-f]\{64\}  //p' "$manifest")
[ ${#names[@]} -ge 2 ] || die "$manifest names no pieces: copy it again."
missing=() wrong=()
for name in "${names[@]}"; do
  [ -f "$kit/$name" ] || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] || die "$kit lacks ${#missing[@]} of ${#names[@]} pieces; copy them there: ${missing[*]}"
# Without "|| true", the first wrong piece would end the script.
while IFS= read -r line; do
  wrong+=("${line%: FAILED*}")
done < <(cd "$kit" && sha256sum --check --quiet manifest.txt 2>/dev/null || true)
[ ${#wrong[@]} -eq 0 ] || die "$kit has ${#wrong[@]} pieces that are not as they were packed; copy them again: ${wrong[*]}"
echo "All ${#names[@]} pieces are as they were packed."

step "Checking the machine"
[ "$(uname -sm)" = "Linux x86_64" ] || die "The kit is for Linux on x86-64, and this is $(uname -sm)."
glibc=$(sed -n '1s/.* glibc \([0-9.]*\),.*/\1/p' "$manifest")
have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/.* //')
[ "$(printf '%s\n' "$glibc" "${have:-0}" | sort --version-sort | head -1)" = "$glibc" ] ||
  die "The kit needs glibc $glibc, and this machine has ${have:-another C library}: use a newer system, or pack the kit on an older one."
space=$(sed -n '1s/.* \([0-9.]*\) GB unpacked$/\1/p' "$manifest")
free=$(df --output=avail --block-size=1M "$kit" | tail -1)
# Half as much again: for compiled kernels, logs and Python's caches.
[ "$free" -ge "$((${space%.*} * 1500 + 1500))" ] || [ -d "$kit/unpacked" ] ||
  die "The kit needs about ${space} GB and half as much again in $kit, where $free MB are free."

step "Unpacking and running"
mkdir -p "$kit/unpacked"
# Scripts and tests of an earlier kit must not stay beside those of this one.
rm -rf "$kit/unpacked/"{ci,benchmarks,modelzoo,tensorflow_staging}
tar xzf "$kit/start.tar.gz" --directory "$kit/unpacked"
export LD_LIBRARY_PATH_OF_MACHINE=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$kit/unpacked/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
pieces=("${names[@]:1}")
exec "$kit/unpacked/python/bin/python3.11" -s "$kit/unpacked/ci/gpu/run_kit.py" --report="$report" \
  --seconds="$((${GPU_KIT_SECONDS:-840} - SECONDS))" "${pieces[@]/#/$kit/}"
