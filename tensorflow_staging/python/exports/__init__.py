# SPDX-License-Identifier: Apache-2.0
"""Graphs without stages, for programs that do not have this package."""
