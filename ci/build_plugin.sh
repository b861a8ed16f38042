#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel tensorflow-staging, for an official TensorFlow, into dist/plugin/, with Bazel. pip fetches that TensorFlow
# into .venv-plugin/TENSORFLOW-PYTHON, and installs the wheel beside it.
#
#   ci/build_plugin.sh [OPTION...]
#
#   --tensorflow=2.20   for this minor version instead of the latest: one that has a folder in plugin/requirements/
#   --python=3.13       for another Python: one whose pinned requirements are in that folder
#   --test [ARGUMENT...]  also runs the wheel's tests there; what follows are pytest's arguments
steps_total=4
source "$(dirname "$0")/steps.sh"
cd plugin/requirements

tensorflow=$(printf '%s\n' * | sort --version-sort | tail -n 1)
version=$default_python
test=
while [ $# -gt 0 ] && [ -z "$test" ]; do
  case $1 in
    --tensorflow=*) tensorflow=${1#*=} ;;
    --python=*) version=${1#*=} ;;
    --test) test=yes; steps_total=5 ;;
    *) die "'$1' is no option. Usage: ci/build_plugin.sh [--tensorflow=VERSION] [--python=VERSION] [--test [PYTEST_ARGUMENT...]]" ;;
  esac
  shift
done
[ -n "$tensorflow" ] && [ -d "$tensorflow" ] ||
  die "--tensorflow=$tensorflow: the plugin can be built for TensorFlow $(printf '%s\n' * | sort --version-sort | paste -sd ' ')."
requirements=plugin/requirements/$tensorflow/$version.txt
[ -f "$tensorflow/$version.txt" ] ||
  die "--python=$version: for TensorFlow $tensorflow, the plugin can be built for Python $(cd "$tensorflow" && printf '%s\n' *.txt | sed 's/\.txt$//' | sort --version-sort | paste -sd ' ')."
cd "$root"

step "Installing the packages that the build needs"
ci/install_deps.sh "--plugin=$version"
python=$(find_python "$version") || die "nothing was built."
"$python" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null ||
  die "Python's headers were not found. On Debian: apt-get install python$version-dev"

step "Fetching the official TensorFlow $tensorflow for Python $version"
venv=$root/.venv-plugin/$tensorflow-$version
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
install_pinned "$venv/bin/python" "$requirements"

step "Compiling the library with Bazel"
# Each TensorFlow has a folder of its own in Bazel's output, so that no build replaces what another one compiled.
TF_STAGING_PLUGIN_PYTHON=$venv/bin/python bazel build "--platform_suffix=-plugin-$tensorflow" //tensorflow_staging/plugin:library

step "Assembling the wheel, and installing it"
exact=$(sed -n 's/^tensorflow==\([^ ]*\) .*/\1/p' "$requirements")
staging=$(sed -n 's/^STAGING_VERSION = "\(.*\)"$/\1/p' third_party/versions.bzl)
mkdir -p dist/plugin
rm -f dist/plugin/tensorflow_staging-"$tensorflow".*-cp"${version/./}"-*.whl
wheel=$("$venv/bin/python" -B plugin/assemble.py --library bazel-bin/tensorflow_staging/plugin/_pywrap_staging.so \
  --tensorflow "$exact" --staging "$staging" dist/plugin)
ls -l "$wheel"
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-index --no-deps --force-reinstall "$wheel"

if [ "$test" ]; then
  step "Running its tests"
  cd plugin && "$venv/bin/python" -B -m pytest -c tests/pytest.ini -p no:cacheprovider tests "$@"
fi
