# SPDX-License-Identifier: Apache-2.0
"""Manual stages: `tf.staged`, `tf.prefetch_join`, and the ops and runner options that they add to a graph."""
