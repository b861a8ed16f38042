#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs a browser, and into .venv the library that drives it, for the tests of the HTML report. These tests are skipped
# without, so nothing else needs this. Only the browser itself needs root, and only if it is missing.
source "$(dirname "$0")/steps.sh"

[ -x "$venv/bin/python" ] || die ".venv is missing: run ci/install_wheel.sh first."
if ! command -v chromium-headless-shell chromium >/dev/null; then
  command -v apt-get >/dev/null || die "There is no apt-get here; install chromium with your own package manager."
  [ "$(id -u)" -eq 0 ] || die "As root: apt-get update && apt-get install --no-install-recommends chromium-headless-shell"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update --quiet --quiet
  apt-get install --quiet --quiet --yes --no-install-recommends chromium-headless-shell >/dev/null
fi
install_pinned "$venv/bin/python" ci/browser_requirements.txt
