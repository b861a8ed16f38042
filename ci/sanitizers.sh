#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the C++ tests of tensorflow_staging/core, or those in TARGET..., with our code instrumented by sanitizers. In each
# configuration, a further test shows that it finds errors.
#
#   ci/sanitizers.sh address [TARGET...]   AddressSanitizer with its leak check, and UndefinedBehaviorSanitizer
#   ci/sanitizers.sh thread [TARGET...]    ThreadSanitizer
#   ci/sanitizers.sh                       both, one after the other
steps_total=1
source "$(dirname "$0")/steps.sh"

# run CONFIG SANITIZER [TARGET...]
run() {
  local config=$1 sanitizer=$2
  shift 2
  step "Running the C++ tests with --config=$config"
  bazel test --config="$config" --keep_going "//tensorflow_staging/core/testing/sanitizers:${sanitizer}_sanitizer_test" \
    "${@:-//tensorflow_staging/core/...}"
}

case ${1:-} in
  address) run asan "$@" ;;
  thread) run tsan "$@" ;;
  '')
    steps_total=2
    failed=()
    run asan address || failed+=(asan)
    run tsan thread || failed+=(tsan)
    [ ${#failed[@]} -eq 0 ] || die "Tests failed with: ${failed[*]}"
    ;;
  *) die "'$1' is no sanitizer. Usage: ci/sanitizers.sh [address|thread [TARGET...]]" ;;
esac
