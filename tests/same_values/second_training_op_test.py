# SPDX-License-Identifier: Apache-2.0
"""A run with two training ops, of which one needs no element, trains as without a stage.

Both may change one variable, or be of one optimizer that has numbers for all its variables, as Adam has. Then their
order decides, and runs differ without a stage, too, unless one of them waits for the other.
"""

import contextlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import stage_kinds

_STEPS = 40
_ROWS = 32


def _train(smart_stage, in_turn: bool) -> list[np.ndarray]:
  """Returns the variables after some steps. `smart_stage` is None for no stage."""
  with tf.Graph().as_default():
    tf.set_random_seed(1)
    elements = tf.data.Dataset.range(8 * _STEPS).batch(8)
    ids = tf.strings.to_hash_bucket_fast(
        tf.strings.as_string(tf.data.make_one_shot_iterator(elements).get_next()), _ROWS)
    config = tf.ConfigProto()
    if smart_stage is not None:
      ids, config = stage_kinds.stage(ids, smart_stage, capacity=3)
    config.inter_op_parallelism_threads = 4
    config.intra_op_parallelism_threads = 1
    table, other = (tf.get_variable(name, [_ROWS, 8], use_resource=True) for name in ("table", "other"))
    optimizers = [tf.train.AdamOptimizer(0.01)] * 2 if in_turn else [tf.train.AdamOptimizer(0.01) for _ in range(2)]
    train = optimizers[0].minimize(tf.reduce_mean((tf.nn.embedding_lookup(table, ids) - 1) ** 2))
    with tf.control_dependencies([train]) if in_turn else contextlib.nullcontext():
      decayed = table if in_turn else other
      decay = optimizers[1].minimize(tf.reduce_sum(decayed**2))
    hooks = [] if smart_stage is None else [tf.make_prefetch_hook()]
    with tf.train.MonitoredTrainingSession(config=config, hooks=hooks) as sess:
      for _ in range(_STEPS):
        sess.run([train, decay])
      return sess.run([table, other])


@stage_kinds.BOTH
@pytest.mark.parametrize("in_turn", [False, True], ids=["apart", "in turn"])
def test_both_train_as_without_a_stage(smart_stage, in_turn):
  np.testing.assert_array_equal(_train(smart_stage, in_turn), _train(None, in_turn))
