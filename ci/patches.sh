#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Works on the series of patches over TensorFlow's tree; docs/rebasing.md says when to use which command.
#
#   ci/patches.sh apply TREE                    applies the series to a pristine tree
#   ci/patches.sh check [PRISTINE]              checks the rules for patches, and that each patch applies exactly
#   ci/patches.sh edit NAME TREE                prepares a pristine tree for changing one patch
#   ci/patches.sh refresh PRISTINE [NAME TREE]  rewrites the patches for the tree, one of them from an edited tree
set -euo pipefail

ci=$(dirname "${BASH_SOURCE[0]}")
# steps.sh changes the working folder, so it runs in a subshell: the arguments may be relative to the current one.
python=$(source "$ci/steps.sh" && find_python) || {
  echo "ci/install_deps.sh installs it." >&2
  exit 1
}
exec "$python" "$ci/patches/series.py" "$@"
