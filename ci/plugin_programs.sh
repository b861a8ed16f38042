#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the plugin, installs it with other packages into .venv-programs, and compares training with the callback and
# without it.
#
#   ci/plugin_programs.sh programs   trains the programs of plugin/programs both ways: losses, metrics, weights and
#                                    predictions must be the same to the bit
#   ci/plugin_programs.sh keras      runs Keras's own tests both ways: a test that passes without must pass with it
steps_total=2
source "$(dirname "$0")/steps.sh"

case ${1:-} in
  programs | keras) ;;
  *) die "'${1:-}' is no command. Usage: ci/plugin_programs.sh programs|keras" ;;
esac

ci/build_plugin.sh --tensorflow=2.21
step "Installing the plugin and the packages into .venv-programs"
python=$(find_python)
venv=$root/.venv-programs
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
PIP_NO_DEPS=1 install_pinned "$venv/bin/python" "plugin/requirements/2.21/$default_python.txt" plugin/programs/requirements.txt
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --force-reinstall dist/plugin/tensorflow_staging-2.21.*-cp"${default_python/./}"-*.whl

export TF_CPP_MIN_LOG_LEVEL=2
if [ "$1" = keras ]; then
  step "Running Keras's own tests without the callback and with it"
  exec "$venv/bin/python" -B plugin/keras_tests/run.py
fi
step "Training the programs without the callback and with it"
failed=0
for file in plugin/programs/*_programs.py; do
  "$venv/bin/python" -B "$file" || failed=1
done
exit "$failed"
