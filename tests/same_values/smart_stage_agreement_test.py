# SPDX-License-Identifier: Apache-2.0
"""How far results with SmartStage agree with results without it.

`smart_stage_comparison_test` compares random graphs, `smart_stage_training_test` a whole training.
"""

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_comparison
from tensorflow_staging.python.testing import smart_stage_runs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_ROWS = 8
_COLUMNS = 16


def _data() -> list[np.ndarray]:
  """Returns three summands, of magnitudes so different that the order of their sum changes its rounding."""
  numbers = np.random.RandomState(1)
  scales = numbers.choice([1e-3, 1, 1e3], [3, _ROWS, _COLUMNS])
  return list((numbers.uniform(-1, 1, [3, _ROWS, _COLUMNS]) * scales).astype(np.float32))


def _sums(smart_stage: bool, grappler: bool) -> tuple[np.ndarray, list[str]]:
  """Adds the summands in steps, the first of them times a variable, and returns the sums and the ops of a step."""
  with tf.Graph().as_default():
    x, y, z = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(tuple(_data()))).get_next()
    variable = tf.get_variable("variable", [_COLUMNS], initializer=tf.ones_initializer(), use_resource=True)
    # SmartStage computes y + z ahead. Without SmartStage, Grappler may add all three at once, in another order.
    result = tf.nn.relu(variable * x + (y + z))
    with tf.Session(config=smart_stage_comparison.config(smart_stage, grappler)) as sess:
      sess.run(variable.initializer)
      with tf.make_prefetch_hook().running(sess):
        first, types = smart_stage_runs.run_and_look(sess, result)
        return np.stack([first, *test_util.drain(sess, result)]), types


def test_sums_agree_to_the_last_bit_without_grappler():
  staged, types = _sums(True, grappler=False)
  plain, _ = _sums(False, grappler=False)
  assert "TensorBufferTake" in types
  assert staged.tobytes() == plain.tobytes()


def test_sums_agree_up_to_rounding_with_grappler():
  x, y, z = _data()
  # Otherwise no order of the sum could make a difference.
  assert np.any((x + y) + z != x + (y + z))
  staged, types = _sums(True, grappler=True)
  plain, _ = _sums(False, grappler=True)
  assert "TensorBufferTake" in types
  largest = np.abs(x) + np.abs(y) + np.abs(z)
  assert np.all(np.abs(staged - plain) <= 2 * np.finfo(np.float32).eps * largest)


def _noise_of_each_record(source: test_util.Source) -> tuple[tf.Operation, tf.Tensor]:
  """Returns the initialiser of an iterator, and a random number that the step computes of each of its records."""
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(100))
  noise = tf.random.uniform([], seed=5) + 0.0 * tf.cast(iterator.get_next(), tf.float32)
  with tf.control_dependencies([noise]):
    counted = tf.cast(source.tensor(), tf.float32)
  variable = tf.get_variable("variable", initializer=0.0, use_resource=True)
  return iterator.initializer, noise + 0.0 * counted + variable


def _draws(count: int) -> list[float]:
  """Returns the random numbers of the first steps without SmartStage."""
  with tf.Graph().as_default():
    tf.set_random_seed(3)
    initializer, noise = _noise_of_each_record(test_util.Source())
    with tf.Session() as sess:
      sess.run([tf.global_variables_initializer(), initializer])
      return [sess.run(noise) for _ in range(count)]


@pytest.mark.parametrize("capacity", [1, 4])
def test_a_draw_is_made_once_a_record(capacity):
  tf.set_random_seed(3)
  initializer, noise = _noise_of_each_record(test_util.Source())
  with smart_stage_sessions.smart_stage_session(initializer, capacity=capacity) as sess:
    assert "RandomUniform" not in smart_stage_sessions.staged_ops(sess, noise)
    assert [sess.run(noise) for _ in range(19)] == _draws(20)[1:]


def test_the_draws_of_discarded_records_are_not_made_again():
  tf.set_random_seed(3)
  source = test_util.Source()
  initializer, noise = _noise_of_each_record(source)
  with smart_stage_sessions.smart_stage_session(initializer) as sess:
    draws = _draws(20)
    assert sess.run(noise) == draws[0]
    source.wait_until_asked(3)
    sess.run(initializer)
    # Two further records were computed, and discarded by the restart. Without SmartStage, draws[1] would follow.
    assert sess.run(noise) in draws[3:]
