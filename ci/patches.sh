#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The patch series over TensorFlow's tree; docs/rebasing.md tells when to use what.
#
#   ci/patches.sh apply TREE                    applies the series to a pristine tree
#   ci/patches.sh check [PRISTINE]              checks the rules, and that each patch applies exactly
#   ci/patches.sh edit NAME TREE                prepares a pristine tree for changing one patch
#   ci/patches.sh refresh PRISTINE [NAME TREE]  writes the patches anew, one of them from an edited tree
set -euo pipefail

ci=$(dirname "${BASH_SOURCE[0]}")
# In a shell of its own: steps.sh changes the folder, and the arguments may be relative to this one.
python=$(source "$ci/steps.sh" && find_python) || {
  echo "error: Python 3.11 is needed; ci/install_deps.sh installs it." >&2
  exit 1
}
exec "$python" "$ci/patches/series.py" "$@"
