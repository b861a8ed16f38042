#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs dist/*.whl into the project's virtual environment .venv, with pinned versions of all its dependencies; a wheel for
# another Python than the default into .venv-3.10, named after that Python.
source "$(dirname "$0")/steps.sh"

wheels=(dist/*.whl)
[ -e "${wheels[0]}" ] || die "dist/ has no wheel: run ci/build_wheel.sh first."
[[ ${wheels[0]} =~ -cp3([0-9]+)- ]] || die "${wheels[0]} is not a wheel of this project."
version=3.${BASH_REMATCH[1]}
python=$(find_python "$version") || die "${wheels[0]} was not installed."
[ "$version" = "$default_python" ] || venv+=-$version
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"

# unchanged STAMP FILE...: whether the files are as they were at the last installation, which wrote them to STAMP.
unchanged() {
  cmp --silent <(cat "${@:2}") "$1"
}

requirements=("$(requirements_of third_party/python "$version")" "$(requirements_of ci "$version")")
[ "$version" != "$default_python" ] || requirements+=(docs/requirements.txt)
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
