# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts of this folder: strict mode, the project's root, and functions that several scripts use.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv=$root/.venv
steps_total=${steps_total:-1}
steps_done=0

# step TEXT: announces the next step, with the seconds since the script began.
step() {
  steps_done=$((steps_done + 1))
  printf '\n[%d/%d, %ds] %s\n' "$steps_done" "$steps_total" "$SECONDS" "$*"
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# find_python: prints the path of a Python 3.11, which the wheel needs: PYTHON_BIN_PATH if it is one, or the machine's.
find_python() {
  local candidate
  for candidate in "${PYTHON_BIN_PATH:-}" python3.11 python3; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  return 1
}

# install_pinned PYTHON FILE...: installs the packages that requirements files pin by hash, for PYTHON. Where
# TF_STAGING_DISTDIR names a folder, pip first installs from that folder alone, without any network; only if that fails
# does it use its index too.
install_pinned() {
  local pip=("$1" -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary=:all:)
  shift
  pip+=("${@/#/--requirement=}")
  if [ -n "${TF_STAGING_DISTDIR:-}" ]; then
    pip+=("--find-links=$TF_STAGING_DISTDIR")
    # pip ignores the machine's settings here: --no-index alone keeps their find-links, which may be URLs.
    if PIP_CONFIG_FILE=/dev/null "${pip[@]}" --no-index --isolated; then
      return
    fi
    echo "pip could not install all packages from $TF_STAGING_DISTDIR alone; it now tries with its index."
  fi
  "${pip[@]}"
}
