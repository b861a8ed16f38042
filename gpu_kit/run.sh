#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the kit in this folder on a machine with an NVIDIA driver and a GPU; it needs no network, no CUDA and no Python:
#
#   ./run.sh [--only PART]... [--device cpu] [--seconds 300] [--stretch 1] [--report FILE]
#
# It prints each result when it is known, and appends it to FILE.log; it writes FILE, by default report.md beside this
# script, again after each part. It unpacks into the folder unpacked, once, and takes at most 300 seconds. --only runs the
# named parts alone (gpu_kit/kit_parts.py has their names); --device cpu tries all of them on a machine without a GPU;
# with --stretch 4, each part may take four times as long, on a slow machine. pack.sh puts this script into the kit.
set -euo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() {
  printf '\n[%ds] %s\n' "$SECONDS" "$*"
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

usage="run.sh [--only PART]... [--device cpu] [--seconds 300] [--stretch 1] [--report FILE]"
seconds=300
report=$kit/report.md
arguments=()
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || die "$1 needs a value: $usage"
  case $1 in
    --only | --device | --stretch) arguments+=("$1" "$2") ;;
    --seconds) seconds=$2 ;;
    --report) report=$(realpath -m "$2") ;;
    *) die "unknown option $1: $usage" ;;
  esac
  shift 2
done

say "Checking the pieces in $kit"
manifest=$kit/manifest.txt
[ -f "$manifest" ] || die "$kit has no manifest.txt: copy all files that gpu_kit/pack.sh wrote to dist/gpu-kit into one folder, and run the run.sh there."
title=$(head -1 "$manifest")
[[ $title == "# GPU kit 2:"* ]] || die "$manifest is not of this version of the kit: use the run.sh that was packed with it. It begins: $title"
echo "${title#\# }"
mapfile -t names < <(sed -n 's/^[0-9a-f]\{64\}  //p' "$manifest")
[ ${#names[@]} -ge 3 ] || die "$manifest names no pieces: copy it again."
if ! cmp --silent "$manifest" "$kit/unpacked/unpacked.txt"; then
  missing=() wrong=()
  for name in "${names[@]}"; do
    [ -f "$kit/$name" ] || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] || die "$kit lacks ${#missing[@]} of ${#names[@]} pieces; copy them there: ${missing[*]}"
  # One process for each piece. Without "|| true", the first wrong piece would end the script.
  while IFS= read -r line; do
    wrong+=("${line%: FAILED*}")
  done < <(cd "$kit" && tail -n +2 manifest.txt | tr '\n' '\0' |
    xargs -0 -P 8 -n 1 sh -c 'printf "%s\n" "$0" | sha256sum --check --quiet 2>/dev/null' | sort || true)
  [ ${#wrong[@]} -eq 0 ] || die "$kit has ${#wrong[@]} pieces that are not as they were packed; copy them again: ${wrong[*]}"
  echo "All ${#names[@]} pieces are as they were packed."

  [ "$(uname -sm)" = "Linux x86_64" ] || die "The kit is for Linux on x86-64, and this is $(uname -sm)."
  glibc=$(sed -n '1s/.* glibc \([0-9.]*\),.*/\1/p' "$manifest")
  have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/.* //')
  [ "$(printf '%s\n' "$glibc" "${have:-0}" | sort --version-sort | head -1)" = "$glibc" ] ||
    die "The kit needs glibc $glibc, and this machine has ${have:-another C library}: use a newer system, or pack the kit on an older one."
  space=$(sed -n '1s/.* \([0-9.]*\) GB unpacked$/\1/p' "$manifest")
  free=$(df --output=avail --block-size=1M "$kit" | tail -1)
  # Half as much again: for compiled kernels, logs and Python's caches.
  [ "$free" -ge "$((${space%.*} * 1500 + 1500))" ] ||
    die "The kit needs about ${space} GB and half as much again in $kit, where $free MB are free."

  say "Unpacking"
  rm -rf "$kit/unpacked"
  mkdir "$kit/unpacked"
  tar xzf "$kit/python.tar.gz" --directory "$kit/unpacked"
fi

python=$kit/unpacked/python/bin/python3.11
export LD_LIBRARY_PATH_OF_MACHINE=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$kit/unpacked/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ ! -f "$kit/unpacked/unpacked.txt" ]; then
  packages=()
  for name in "${names[@]}"; do
    [[ $name != packages.* ]] || packages+=("$kit/$name")
  done
  "$python" -s "$kit/unpacked/unpacker/pieces.py" "${packages[@]}" "$kit/unpacked"
  # The files of the commit replace some of the base's.
  tar xzf "$kit/commit.tar.gz" --directory "$kit/unpacked"
  (cd "$kit/unpacked" && xargs --no-run-if-empty --delimiter='\n' rm -f <removed.txt)
  cp "$manifest" "$kit/unpacked/unpacked.txt"
fi

say "Running"
exec "$python" -s "$kit/unpacked/gpu_kit/run_kit.py" --report="$report" --seconds="$((seconds - SECONDS))" \
  "${arguments[@]}"
