# SPDX-License-Identifier: Apache-2.0
"""Stages for TensorFlow 2: `tf.staging.ahead` for a loop of one's own, `tf.staging.SmartStage` for Keras."""
