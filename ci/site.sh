#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the site of the documents into dist/site, with the API reference of the wheel that ci/install_wheel.sh installed.
# Passes its arguments to MkDocs.
source "$(dirname "$0")/steps.sh"

[ -x "$venv/bin/mkdocs" ] || die "MkDocs is not in .venv: run ci/install_wheel.sh first."
export NO_MKDOCS_2_WARNING=1 TF_CPP_MIN_LOG_LEVEL=2
"$venv/bin/mkdocs" --quiet build --strict --config-file ci/site/mkdocs.yml "$@"
echo "The site is in dist/site. To search it, too: .venv/bin/python -m http.server --bind 127.0.0.1 --directory dist/site"
