#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the kit in this folder on a machine with an NVIDIA driver and a GPU; it needs no network, no CUDA and no Python:
#
#   ./run.sh [--only PART]... [--device cpu] [--seconds 300] [--stretch 1] [--report FILE]
#
# It prints each result when it is known, and appends it to FILE.log; it writes FILE, by default report.md beside this
# script, again after each part, and takes at most 300 seconds. --only runs the named parts alone (gpu_kit/kit_parts.py
# has their names); --device cpu tries all of them on a machine without a GPU; with --stretch 4, each part may take four
# times as long, on a slow machine. pack.sh puts this script into the kit.
set -euo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LD_LIBRARY_PATH_OF_MACHINE=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$kit/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$kit/python/bin/python3.11" -s "$kit/gpu_kit/run_kit.py" "$@"
