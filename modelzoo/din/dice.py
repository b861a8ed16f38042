# SPDX-License-Identifier: Apache-2.0
"""DIN's activation function, Dice: a PReLU that moves its bend to the mean of its inputs."""

from __future__ import annotations

import tensorflow as tf

from modelzoo.base.layers import Activation

_EPSILON = 1e-8
_DECAY = 0.99


def activation(training: bool) -> Activation:
  """Returns the function that applies Dice to the last dimension of a matrix, with variables of the current scope.

  Training uses the mean and variance of the batch, and keeps moving averages of them, updated by the ops in the
  collection UPDATE_OPS; otherwise these are used.
  """
  return lambda x: _dice(x, training)


def _dice(x: tf.Tensor, training: bool) -> tf.Tensor:
  size = [int(x.shape[-1])]
  slope = tf.get_variable("slope", size, initializer=tf.zeros_initializer())
  moving_mean = tf.get_variable("moving_mean", size, initializer=tf.zeros_initializer(), trainable=False)
  moving_variance = tf.get_variable("moving_variance", size, initializer=tf.ones_initializer(), trainable=False)
  if training:
    mean, variance = tf.nn.moments(x, axes=[0])
    for moving, value in ((moving_mean, mean), (moving_variance, variance)):
      change = tf.stop_gradient(value) - moving
      tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(moving, (1.0 - _DECAY) * change))
  else:
    mean, variance = moving_mean, moving_variance
  share = tf.sigmoid((x - mean) * tf.rsqrt(variance + _EPSILON))
  return share * x + (1.0 - share) * slope * x
