#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs what takes too long for every change: each row of docs/reliability.md that ci/test.sh does not run. Builds and
# installs the wheel first. A part that fails does not stop the others.
#
#   ci/nightly.sh [PART...]   runs all parts, or only these, in this order:
#
#   kills          kills a training process 200 times
#   histories      plays 60,000 random histories to sessions and functions, and compares them with no stage
#   ledgers        plays two million of them to the model of the ledgers
#   scheduled      plays a million to the C++ engine under a scheduler that a seed determines
#   feeds          feeds and fetches at random in a thousand random graphs with tf.staged
#   restores       restores, or begins the data anew, a thousand times while stages begin or run
#   ahead          runs each case of TensorFlow 2's part a hundred times
#   ahead_order    runs them thirty times with three threads for each stage
#   exactly_once   sends ten million records through stages that are interrupted all the time
#   soak           does so for half an hour, and watches memory and threads
#   sessions       opens a thousand sessions with SmartStage
#   closes         closes ten thousand sessions at random moments
#   full, pools, smart   TensorFlow's own Python tests: all, on stage thread pools, with SmartStage
#   variable       some of them with TF_STAGING_SMART_STAGE=1 alone
#   cc             TensorFlow's own C++ tests
#   address, thread      our C++ tests under the sanitizers
#   locks                the thread-safety annotations of our C++, with clang
#   plugins              the plugin, for each TensorFlow and Python that it supports
#   gpus                 the plugin on this machine's GPUs, or else on fake ones
#   programs             trains programs that use other packages with the plugin's callback and without it
#   keras                Keras's own tests, with the callback and without it
#
# dist/nightly/PART.log keeps what each part prints. The last lines say how each part ended and how long it took.
all_parts=(kills histories ledgers scheduled feeds restores ahead ahead_order exactly_once soak sessions closes full pools smart variable cc address thread locks plugins gpus programs keras)
parts=("${@:-${all_parts[@]}}")
steps_total=$((2 + ${#parts[@]}))
source "$(dirname "$0")/steps.sh"

# Ends a part that hangs; the soak alone takes half an hour, and `ahead` a hundred times its three minutes.
most_seconds=$((8 * 3600))
logs=$root/dist/nightly

# command_of PART: sets `command` to what runs a part.
command_of() {
  case $1 in
    kills) command=(env STAGING_KILLS=100 "$venv/bin/pytest" tests/exactly_once/killed_training_test.py) ;;
    histories) command=(env STAGING_HISTORIES=60000 "$venv/bin/pytest" -n 3 tests/exactly_once/histories_test.py) ;;
    scheduled)
      command=(bazel test --test_env=STAGING_SEEDS=1000000 --test_timeout=14400 --test_output=all
        //tensorflow_staging/core/testing/histories/...)
      ;;
    feeds)
      command=(env STAGING_FEED_GRAPHS=1000 "$venv/bin/pytest" -n 2 tests/same_values/staged_feeds_random_test.py)
      ;;
    restores)
      command=(env STAGING_REPEATS=1000 "$venv/bin/pytest" -k "restore_while or chain_whose or one_of_two"
        tensorflow_staging/python/checkpoints/saved_iterators_test.py tests/exactly_once/restarts_test.py)
      ;;
    ledgers)
      command=(env STAGING_HISTORIES=1000000 "$venv/bin/pytest" -n 2
        tensorflow_staging/python/testing/histories/ledger_model_test.py)
      ;;
    ahead)
      command=(env STAGING_REPEATS=100 "$venv/bin/pytest" -n 3 tensorflow_staging/python/ahead/ahead_test.py)
      ;;
    ahead_order)
      command=(env STAGING_THREADS=3 STAGING_REPEATS=30 "$venv/bin/pytest" -n 3
        tensorflow_staging/python/ahead/ahead_test.py)
      ;;
    exactly_once) command=("$venv/bin/python" benchmarks/exactly_once.py) ;;
    soak) command=("$venv/bin/python" benchmarks/soak.py) ;;
    sessions) command=(env STAGING_SESSIONS=1000 "$venv/bin/pytest" tests/faults/many_stages_test.py) ;;
    closes)
      command=(env STAGING_CLOSES=5000 "$venv/bin/pytest" tests/closing/closing_at_random_test.py)
      ;;
    full) command=(ci/upstream_tests.sh full) ;;
    pools | smart) command=(ci/upstream_tests.sh full "$1") ;;
    variable) command=(ci/upstream_tests.sh variable) ;;
    cc) command=(bazel test --keep_going //relink/upstream:all_tests) ;;
    address | thread) command=(ci/sanitizers.sh "$1") ;;
    locks) command=(ci/thread_safety.sh) ;;
    plugins) command=(ci/plugin_versions.sh) ;;
    gpus) command=(ci/plugin_gpus.sh) ;;
    programs | keras) command=(ci/plugin_programs.sh "$1") ;;
    *) die "'$1' is no part; there are: ${all_parts[*]}." ;;
  esac
}

for part in "${parts[@]}"; do
  command_of "$part"
done

step "Installing the packages that the build needs, and building the wheel"
ci/install_deps.sh
ci/build_wheel.sh
step "Installing the wheel into .venv"
ci/install_wheel.sh

mkdir -p "$logs"
export TF_CPP_MIN_LOG_LEVEL=2
summary=
failed=0
for part in "${parts[@]}"; do
  command_of "$part"
  step "$part: ${command[*]}"
  began=$SECONDS
  result=passed
  timeout --kill-after=60 "$most_seconds" "${command[@]}" >"$logs/$part.log" 2>&1 || result="failed (exit $?)"
  [ "$result" = passed ] || failed=1
  tail -n 5 "$logs/$part.log"
  summary+=$(printf '%-13s %-17s %6d s' "$part" "$result" $((SECONDS - began)))$'\n'
done
printf '\n%s' "$summary"
exit "$failed"
