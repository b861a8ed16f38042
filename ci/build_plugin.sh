#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel tensorflow-staging, for an official TensorFlow, into dist/plugin/. pip fetches that TensorFlow, pinned
# by plugin/requirements.txt, into .venv-plugin. --test also installs the wheel there and runs its tests; what follows are
# pytest's arguments.
steps_total=3
source "$(dirname "$0")/steps.sh"

test=
case ${1:-} in
  '') ;;
  --test) test=yes; steps_total=4; shift ;;
  *) die "'$1' is no option. Usage: ci/build_plugin.sh [--test [PYTEST_ARGUMENT...]]" ;;
esac
command -v g++ >/dev/null || die "g++ was not found. On Debian: apt-get install g++"
python=$(find_python) || die "nothing was built."
"$python" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null ||
  die "Python's headers were not found. On Debian: apt-get install python$default_python-dev"

step "Fetching the official TensorFlow into .venv-plugin"
venv=$root/.venv-plugin
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
install_pinned "$venv/bin/python" plugin/requirements.txt

step "Compiling the library"
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
library=$venv/build/_pywrap_staging.so
mkdir -p "$venv/build" dist/plugin
"$venv/bin/python" -B plugin/compile.py --tensorflow "$packages/tensorflow" --pybind11 "$packages/pybind11/include" \
  --folder "$venv/build/objects" --jobs "$(nproc)" "$library"

step "Assembling the wheel"
tensorflow=$(sed -n 's/^tensorflow==\([^ ]*\) .*/\1/p' plugin/requirements.txt)
staging=$(sed -n 's/^STAGING_VERSION = "\(.*\)"$/\1/p' third_party/versions.bzl)
rm -f dist/plugin/*.whl
"$venv/bin/python" -B plugin/assemble.py --library "$library" --tensorflow "$tensorflow" --staging "$staging" dist/plugin
ls -l dist/plugin/*.whl

if [ "$test" ]; then
  step "Installing the wheel into .venv-plugin and running its tests"
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --force-reinstall dist/plugin/*.whl
  cd plugin && "$venv/bin/python" -B -m pytest -c tests/pytest.ini -p no:cacheprovider tests "$@"
fi
