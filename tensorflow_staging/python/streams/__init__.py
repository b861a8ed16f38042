# SPDX-License-Identifier: Apache-2.0
"""`tf.stream`: the GPU streams on which the ops of a graph run."""
