# SPDX-License-Identifier: Apache-2.0
"""After an error, a monitored session that goes on gets the elements and the errors that it gets without a stage."""

import pytest
import tensorflow as tf

_STEPS = 14


def _is_bad(number):
  return tf.equal(number % 4, 2)


def _source(number):
  return tf.debugging.check_numerics(1 / tf.cast(tf.where(_is_bad(number), 0 * number, number + 1), tf.float32), "bad")


def _region(number):
  return tf.gather(tf.range(100.0), tf.where(_is_bad(number), 1000 + 0 * number, number))


def _check(number):
  with tf.control_dependencies([tf.debugging.assert_equal(_is_bad(number), False)]):
    return 2 * tf.cast(number, tf.float32)


def _python(number):

  def raise_if_bad(value):
    if value % 4 == 2:
      raise ValueError("bad")
    return value.astype("float32")

  return tf.ensure_shape(tf.py_func(raise_if_bad, [number], tf.float32), [])


def _outcomes(kind, place, compute, threads):
  """Returns the value or the error of each step."""
  with tf.Graph().as_default():
    dataset = tf.data.Dataset.range(10)
    if place == "source":
      dataset = dataset.map(compute)
    value = tf.data.make_one_shot_iterator(dataset).get_next()
    value = value if place == "source" else compute(value)
    if kind == "staged":
      value = tf.staged(value, capacity=3, num_threads=threads)
    total = tf.get_variable("total", initializer=0.0)
    train = tf.assign_add(total, value)
    config = tf.ConfigProto()
    options = config.graph_options.optimizer_options
    options.do_smart_stage = kind == "smart"
    options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=3, num_threads=threads))
    tf.train.get_or_create_global_step()
    hooks = [] if kind == "plain" else [tf.make_prefetch_hook()]
    outcomes = []
    with tf.train.MonitoredTrainingSession(config=config, hooks=hooks) as sess:
      for _ in range(_STEPS):
        try:
          outcomes.append(sess.run([value, train]))
        except tf.errors.OpError as error:
          outcomes.append(type(error))
    return outcomes


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("place, compute", [
    ("source", _source), ("source", _check), ("region", _region), ("region", _check), ("region", _python)])
def test_the_next_element_and_the_error_are_those_without_a_stage(place, compute, threads):
  expected = _outcomes("plain", place, compute, threads)
  assert len([outcome for outcome in expected if isinstance(outcome, list)]) == 8
  for kind in ("staged", "smart"):
    assert _outcomes(kind, place, compute, threads) == expected, kind
