#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# metadata_test.sh PYTHON ARGUMENT...: runs verify_metadata.py.
exec "$1" -B -s "${@:2}"
