# SPDX-License-Identifier: Apache-2.0
"""The user's side of SmartStage: `tf.SmartStageOptions` and `tf.train.mark_target_node`."""
