#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies the plugin's library, unless TensorFlow lacks a symbol that it needs. Without this, only a program would find that,
# perhaps late.
#
#   plugin/check_symbols.sh LIBRARY TENSORFLOW COPY   TENSORFLOW is the folder of its libraries
set -euo pipefail

missing=$(LD_LIBRARY_PATH=$2 ldd -r "$1" 2>&1 | sed -n 's/.*undefined symbol: \([^[:space:]]*\).*/\1/p')
# Python's own come from the interpreter.
if missing=$(grep -v '^_\?Py' <<<"$missing" | grep .); then
  printf 'TensorFlow does not export what %s needs:\n%s\n' "${1##*/}" "$missing" >&2
  exit 1
fi
cp "$1" "$3"
