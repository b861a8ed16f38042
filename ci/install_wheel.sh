#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs dist/*.whl into the project's virtual environment .venv, with pinned versions of all that it needs.
source "$(dirname "$0")/steps.sh"

wheels=(dist/*.whl)
[ -e "${wheels[0]}" ] || die "dist/ has no wheel: run ci/build_wheel.sh first."
python=$(find_python) || die "Python 3.11 was not found."
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)

"${pip[@]}" install --require-hashes --only-binary=:all: --requirement third_party/python/requirements.txt \
  --requirement ci/requirements.txt

# A wheel of the same version is reinstalled only if its bytes are others.
stamp=$venv/installed-wheel.sha256
if ! sha256sum --status --check "$stamp" 2>/dev/null; then
  "${pip[@]}" install --no-deps --force-reinstall "${wheels[0]}"
  sha256sum "${wheels[0]}" >"$stamp"
fi
"$venv/bin/python" -m pip check
