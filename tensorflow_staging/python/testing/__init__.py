# SPDX-License-Identifier: Apache-2.0
"""Helpers that several tests share; not part of the wheel."""
