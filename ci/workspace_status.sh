#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Bazel calls this before each build, in the workspace, to learn what the wheel says about its sources: the commit, if
# they are those of a commit.
commit=$(git rev-parse --verify --quiet HEAD 2>/dev/null) || exit 0
changes=$(git status --porcelain 2>/dev/null) && [ -z "$changes" ] && echo "STABLE_COMMIT $commit"
exit 0
