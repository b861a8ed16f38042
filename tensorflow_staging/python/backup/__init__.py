# SPDX-License-Identifier: Apache-2.0
"""Backups of Keras's `fit` with the position in its data: a `fit` that was killed goes on with the next record."""
