#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that the build and the tests need and that are missing. Only then does it need root.
#
#   ci/install_deps.sh [--plugin=PYTHON]   all, or only what ci/build_plugin.sh needs for that Python, such as 3.13
source "$(dirname "$0")/steps.sh"

version=$default_python
all=yes
case ${1:-} in
  --plugin=*) version=${1#*=} all= ;;
esac

missing=()
# need PACKAGES COMMAND...: the packages are missing unless the command succeeds.
need() {
  local packages=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=($packages)
}

need bazel-bootstrap command -v bazel
need g++ command -v g++
if [ "$all" ]; then
  need binutils command -v readelf
  need patch command -v patch
  need unzip command -v unzip
  need xz-utils command -v xz
  need git command -v git
  need "libgtest-dev libgmock-dev" test -e /usr/include/gmock/gmock.h -a -e /usr/include/gtest/gtest.h
  need graphviz command -v dot
  need libbenchmark-dev test -e /usr/include/benchmark/benchmark.h
  need debian-archive-keyring test -e /usr/share/keyrings/debian-archive-keyring.gpg
fi

# Debian has no other Python.
if [ "$version" = "$default_python" ]; then
  python=$(find_python 2>/dev/null || true)
  if [ -z "$python" ]; then
    missing+=("python$default_python"{,-dev,-venv} python3-pip)
  else
    need "python$default_python-dev" "$python" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))'
    need python3-pip "$python" -m pip --version
    need "python$default_python-venv" "$python" -c 'import ensurepip, venv'
  fi
fi

if [ ${#missing[@]} -eq 0 ]; then
  echo "Nothing to install."
  exit 0
fi
command -v apt-get >/dev/null || die "Missing: ${missing[*]} (Debian's names). There is no apt-get here; install them with your own package manager."
if [ "$(id -u)" -ne 0 ]; then
  die "Missing packages. As root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
fi
echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet --quiet
apt-get install --quiet --quiet --yes --no-install-recommends "${missing[@]}" >/dev/null
