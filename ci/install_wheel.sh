#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs dist/*.whl into the project's virtual environment .venv, with pinned versions of all its dependencies.
source "$(dirname "$0")/steps.sh"

wheels=(dist/*.whl)
[ -e "${wheels[0]}" ] || die "dist/ has no wheel: run ci/build_wheel.sh first."
python=$(find_python) || die "Python 3.11 was not found."
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"

# unchanged STAMP FILE...: whether the files are as they were at the last installation, which wrote them to STAMP.
unchanged() {
  cmp --silent <(cat "${@:2}") "$1"
}

requirements=(third_party/python/requirements.txt ci/requirements.txt docs/requirements.txt)
stamp=$venv/installed-requirements
if ! unchanged "$stamp" "${requirements[@]}"; then
  install_pinned "$venv/bin/python" "${requirements[@]}"
  cat "${requirements[@]}" >"$stamp"
fi

# Two builds may have the same version, so pip alone would not notice a new wheel.
stamp=$venv/installed-wheel
if ! unchanged "$stamp" <(sha256sum "${wheels[0]}"); then
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-index --no-deps --force-reinstall \
    "${wheels[0]}"
  sha256sum "${wheels[0]}" >"$stamp"
fi
"$venv/bin/python" -m pip check
