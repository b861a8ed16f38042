#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the plugin for each TensorFlow and Python of plugin/requirements/, and runs its tests there. A Python that this
# machine lacks is named and left out. Removes each environment that it has made, since each takes 2 GB.
#
#   ci/plugin_versions.sh [TENSORFLOW...]   for all, or only these, as in 2.16 2.20
steps_total=0
source "$(dirname "$0")/steps.sh"

tensorflows=("$@")
[ $# -gt 0 ] || mapfile -t tensorflows < <(ls plugin/requirements | sort --version-sort)
targets=()
summary=
for tensorflow in "${tensorflows[@]}"; do
  [ -d "plugin/requirements/$tensorflow" ] || die "'$tensorflow' is no folder of plugin/requirements."
  for python in $(ls "plugin/requirements/$tensorflow" | sed 's/\.txt$//' | sort --version-sort); do
    if find_python "$python" >/dev/null; then
      targets+=("$tensorflow $python")
    else
      summary+="TensorFlow $tensorflow, Python $python: not run, since this Python was not found."$'\n'
    fi
  done
done
steps_total=${#targets[@]}

logs=$root/dist/plugin/logs
mkdir -p "$logs"
failed=0
for target in "${targets[@]}"; do
  read -r tensorflow python <<<"$target"
  step "TensorFlow $tensorflow, Python $python"
  log=$logs/$tensorflow-$python.log
  venv=$root/.venv-plugin/$tensorflow-$python
  is_new=
  [ -d "$venv" ] || is_new=yes
  ci/build_plugin.sh "--tensorflow=$tensorflow" "--python=$python" --test >"$log" 2>&1 || failed=1
  tail -n 20 "$log"
  summary+="TensorFlow $tensorflow, Python $python: $(tail -n 1 "$log")"$'\n'
  [ -z "$is_new" ] || rm -rf "$venv"
done
printf '\n%s' "$summary"
exit "$failed"
