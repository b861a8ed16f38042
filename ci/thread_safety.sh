#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the thread-safety annotations of tensorflow_staging/core, which g++ does not know: that what a lock guards is used
# with it, and that locks are taken in the order that TF_ACQUIRED_AFTER gives. Compiles nothing, so it takes the headers of
# the wheel that is installed in .venv. Installs clang if it is missing. Takes some minutes, because each file is read with all of TensorFlow's headers.
#
#   ci/thread_safety.sh [FILE...]   checks these files, or all that have a lock or a class with one
steps_total=1
source "$(dirname "$0")/steps.sh"

if ! command -v clang++-14 >/dev/null; then
  command -v apt-get >/dev/null || die "There is no apt-get here; install clang 14 with your own package manager."
  [ "$(id -u)" -eq 0 ] || die "As root: apt-get update && apt-get install --no-install-recommends clang-14"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update --quiet --quiet
  apt-get install --quiet --quiet --yes --no-install-recommends clang-14 >/dev/null
fi
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
include=$packages/tensorflow/include
[ -d "$include/tensorflow/core" ] || die "TensorFlow's headers were not found: run ci/build_wheel.sh and ci/install_wheel.sh."

check() {
  clang++-14 -fsyntax-only -std=c++17 -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI=1 -I. -isystem "$include" -Wno-everything \
    -Wthread-safety -Wthread-safety-beta -Werror "$@"
}
export -f check
export include

step "Reading a file with locks in the wrong order, and then the others"
! check -x c++ - 2>/dev/null <<'END' || die "The check finds no error in a file that has one."
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow_staging/core/sources/lock_levels.h"
namespace tensorflow::staging {
struct TwoLocks {
  mutex first TF_ACQUIRED_BEFORE(kBeforeSources);
  mutex second TF_ACQUIRED_AFTER(kBeforeSources);
  void Lock() {
    mutex_lock l(second);
    mutex_lock other(first);
  }
};
}
END
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(
    grep -rlE 'mutex|TF_[A-Z_]*(GUARDED|REQUIRED|EXCLUDED)' tensorflow_staging/core --include=*.h --include=*.cc |
      sed "s/\.h\$/.cc/" | grep -v /sanitizers/ | sort -u | while read -r file; do [ -f "$file" ] && echo "$file"; done)
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$1"' - || die "The annotations do not hold."
echo "${#files[@]} files: the annotations hold."
