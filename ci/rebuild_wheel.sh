#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that two builds of one commit give the same bytes: builds the wheel of HEAD as usual, then again from nothing, in
# another folder and without any cache of outputs. Says what differs if they are not equal. Takes minutes, so no test runs
# it.
steps_total=4
source "$(dirname "$0")/steps.sh"

check_committed() {
  [ -z "$(git status --porcelain)" ] || die "There are changes that are not committed; the wheel says so, and would differ."
}

check_committed
step "Building the wheel"
ci/build_wheel.sh
# Whoever changed something meanwhile would learn it only at the end.
check_committed

step "Cloning the commit into another folder"
folder=$(mktemp -d)
again() {
  (cd "$folder/again" && bazel --output_base="$folder/output" "$@")
}
cleanup() {
  again shutdown || true
  chmod -R u+w "$folder" && rm -rf "$folder"
}
trap cleanup EXIT
git clone --quiet . "$folder/again"

step "Building the wheel again, from nothing"
again build --disk_cache= --remote_cache= //:wheel

step "Comparing the two"
python=$(find_python)
"$python" ci/compare_wheels.py dist/*.whl "$folder"/again/bazel-bin/wheel/wheel.dist/*.whl
cmp dist/*.whl "$folder"/again/bazel-bin/wheel/wheel.dist/*.whl
echo "Both have the same bytes: $(sha256sum <dist/*.whl)"
