#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Formats the C++ with the clang-format that ci/requirements.txt pins, and lints the Python.
#
#   ci/format.sh          formats the C++ in place, and repairs what ruff can
#   ci/format.sh --check  changes nothing, and fails if something would change
steps_total=1
source "$(dirname "$0")/steps.sh"

case ${1:-} in
  '') cpp=(-i) python=(--fix) ;;
  --check) cpp=(--dry-run --Werror) python=() ;;
  *) die "'$1' is no option. Usage: ci/format.sh [--check]" ;;
esac
git ls-files -z '*.cc' '*.h' | xargs -0 "$venv/bin/clang-format" "${cpp[@]}"
"$venv/bin/ruff" check "${python[@]}" .
