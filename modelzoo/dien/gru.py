# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers of DIEN: a GRU, and the AUGRU, whose update gate is scaled by an attention."""

from __future__ import annotations

import tensorflow as tf


def gru(x: tf.Tensor, lengths: tf.Tensor, size: int, name: str, attention: tf.Tensor | None = None) -> tf.Tensor:
  """Runs a GRU, or with an attention an AUGRU, over the rows of a batch.

  With update gate u, reset gate r and attention a, which is 1 for a GRU:

    u = a·σ(x·W_u + h·U_u + b_u),  r = σ(x·W_r + h·U_r + b_r),  c = tanh(x·W_c + r∘(h·U_c) + b_c),
    h' = (1 - u)∘h + u∘c

  Args:
    x: Shape [batch, steps, n].
    lengths: How many of the steps a row has; int32, shape [batch].
    size: The size of the state h, which is 0 at first.
    name: The scope of the variables.
    attention: Shape [batch, steps].

  Returns:
    The states after each step, of shape [batch, steps, size]. After the end of a row, the state does not change.
  """
  steps, width = int(x.shape[1]), int(x.shape[2])
  with tf.variable_scope(name):
    input_weights = tf.get_variable("input_weights", [width, 3 * size])
    gate_weights = tf.get_variable("gate_weights", [size, 2 * size])
    candidate_weights = tf.get_variable("candidate_weights", [size, size])
    bias = tf.get_variable("bias", [3 * size], initializer=tf.zeros_initializer())
    # What does not depend on the state is computed for all steps at once. The loop goes along the first dimension.
    of_inputs = tf.transpose(tf.tensordot(x, input_weights, 1) + bias, [1, 0, 2])
    used = tf.transpose(tf.sequence_mask(lengths, steps, tf.float32))
    share = used if attention is None else used * tf.transpose(attention)

    def step(state: tf.Tensor, now: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
      of_input, scale = now
      gates = tf.sigmoid(of_input[:, : 2 * size] + tf.matmul(state, gate_weights))
      update, reset = tf.split(gates, 2, axis=1)
      candidate = tf.tanh(of_input[:, 2 * size :] + reset * tf.matmul(state, candidate_weights))
      update *= tf.expand_dims(scale, 1)
      return (1.0 - update) * state + update * candidate

    states = tf.scan(step, (of_inputs, share), tf.zeros([tf.shape(x)[0], size]))
    return tf.transpose(states, [1, 0, 2])
