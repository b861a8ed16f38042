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

# The Python that the project's own scripts need and for which the wheel is built by default, and all for which it can be
# built, as in "3.9 3.10 3.11".
default_python=$(sed -n 's/^DEFAULT_PYTHON = "\(.*\)"$/\1/p' third_party/versions.bzl)
supported_pythons=$(sed -n 's/^    "\(3\.[0-9]*\)": struct($/\1/p' third_party/versions.bzl | paste -sd ' ')

# find_python [VERSION]: prints the path of a Python of that version, such as 3.10, or of the default one: PYTHON_BIN_PATH
# if it is one, the machine's, or one that pyenv has installed. Otherwise says on the standard error where it looked.
find_python() {
  local version=${1:-$default_python} candidate found looked= of_pyenv
  mapfile -t of_pyenv < <(compgen -G "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version.*/bin/python")
  for candidate in "${PYTHON_BIN_PATH:-}" "python$version" python3 "${of_pyenv[@]}"; do
    [ -n "$candidate" ] || continue
    if ! command -v "$candidate" >/dev/null; then
      found="not found"
    elif ! found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
      found="$(command -v "$candidate") does not run"
    elif [ "$found" = "$version" ]; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    else
      found="$(command -v "$candidate") is Python $found"
    fi
    looked+="; $candidate: $found"
  done
  echo "Python $version was not found (${looked#; }). Install it with its headers, or set PYTHON_BIN_PATH to it." >&2
  return 1
}

# requirements_of FOLDER VERSION: prints the path of the file in the folder that pins packages for a Python.
requirements_of() {
  local suffix=_$2
  [ "$2" != "$default_python" ] || suffix=
  echo "$1/requirements$suffix.txt"
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
