# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers compute their formula, and stop at the end of each row."""

import numpy as np
import pytest
import tensorflow as tf

from modelzoo.dien.gru import gru

_BATCH, _STEPS, _WIDTH, _SIZE = 3, 12, 4, 5


def _sigmoid(x):
  return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize("with_attention", [False, True], ids=["gru", "augru"])
def test_the_states_are_those_of_the_formula(with_attention):
  random = np.random.default_rng(1)
  x = random.normal(size=(_BATCH, _STEPS, _WIDTH)).astype(np.float32)
  lengths = np.array([_STEPS, 1, 7], np.int32)
  scores = random.random((_BATCH, _STEPS)).astype(np.float32) if with_attention else None
  with tf.Graph().as_default(), tf.Session() as session:
    states = gru(tf.constant(x), tf.constant(lengths), _SIZE, "layer", scores)
    session.run(tf.global_variables_initializer())
    names = ("input_weights", "gate_weights", "candidate_weights", "bias")
    weights = [each for name in names for each in tf.trainable_variables(f"layer/{name}")]
    result, (of_input, of_gates, of_candidate, bias) = session.run([states, weights])
  state = np.zeros((_BATCH, _SIZE))
  for step in range(_STEPS):
    inputs = x[:, step] @ of_input + bias
    gates = _sigmoid(inputs[:, : 2 * _SIZE] + state @ of_gates)
    candidate = np.tanh(inputs[:, 2 * _SIZE :] + gates[:, _SIZE:] * (state @ of_candidate))
    update = gates[:, :_SIZE] * (scores[:, step, None] if with_attention else 1.0)
    after = (1 - update) * state + update * candidate
    state = np.where((step < lengths)[:, None], after, state)
    np.testing.assert_allclose(result[:, step], state, rtol=1e-4, atol=1e-5)
