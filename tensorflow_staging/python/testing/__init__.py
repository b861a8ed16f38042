# SPDX-License-Identifier: Apache-2.0
"""Helpers shared by several tests; not part of the wheel."""
