# SPDX-License-Identifier: Apache-2.0
"""`tf.staged` and `tf.prefetch_join`: stages that the user cuts by hand, and what a graph keeps of them."""
