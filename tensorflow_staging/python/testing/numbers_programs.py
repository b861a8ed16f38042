# SPDX-License-Identifier: Apache-2.0
"""Programs that step through numbers and save their iterators, staged in every way, for the tests of checkpoints."""

import numpy as np
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


def numbers(stop=1000, **_):
  """Returns an iterator over numbers, and a step that yields the next one and needs a variable."""
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(stop).map(lambda n: n + 1 - 1).prefetch(2))
  return iterator, iterator.get_next() * 1


def staged_numbers(stop=1000, **arguments):
  iterator, number = numbers(stop)
  return iterator, tf.staged(number, **arguments)


def _chained_numbers(stop=1000, **arguments):
  iterator, number = numbers(stop)
  return iterator, tf.staged(tf.staged(number, capacity=3) * 1, **arguments)


def _joined_numbers(stop=1000, **_):
  first = tf.data.make_one_shot_iterator(tf.data.Dataset.range(stop))
  second = tf.data.make_one_shot_iterator(tf.data.Dataset.range(0, 2 * stop, 2))
  return [first, second], second.get_next() - first.get_next()


def _explicitly_joined_numbers(stop=1000, **_):
  iterators = [tf.data.make_initializable_iterator(tf.data.Dataset.range(stop)) for _ in range(2)]
  first, second = (iterator.get_next() for iterator in iterators)
  with tf.control_dependencies([tf.assert_equal(first, second)]):
    number = second * 1
  return iterators, tf.staged(number, capacity=3)


def _one_shot_numbers(stop=1000, **_):
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(stop))
  return iterator, iterator.get_next() * 1


def _staged_one_shot_numbers(stop=1000, **arguments):
  iterator, number = _one_shot_numbers(stop)
  return iterator, tf.staged(number, **arguments)


KINDS = {
    "smart_stage": (numbers, True),
    "staged": (staged_numbers, False),
    "staged_and_smart_stage": (staged_numbers, True),
    "chain": (_chained_numbers, False),
    "join": (_joined_numbers, True),
    "staged_join": (_explicitly_joined_numbers, False),
    "one_shot": (_one_shot_numbers, True),
    "staged_one_shot": (_staged_one_shot_numbers, False),
    "no_stage": (numbers, False),
}


class Program:
  """A graph, as a program builds it each time it starts, and a session in which its stages run."""

  def __init__(self, build, smart_stage, capacity=4, num_threads=1, target="", stop=1000):
    self.graph = tf.Graph()
    with self.graph.as_default():
      iterators, self.number = build(stop=stop, capacity=capacity, num_threads=num_threads)
      self.iterators = iterators if isinstance(iterators, list) else [iterators]
      self.step = self.number + tf.get_variable("v", initializer=np.int64(0))
      tf.staging.save_iterators()
      self.saver = tf.train.Saver()
      self.init = tf.global_variables_initializer()
    config = (
        smart_stage_sessions.smart_stage_config(capacity=capacity, num_threads=num_threads)
        if smart_stage else None)
    self.sess = tf.Session(target, self.graph, config)
    self.hook = tf.make_prefetch_hook()

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self.hook.end(self.sess)
    self.sess.close()

  def initialise(self):
    with self.graph.as_default():
      self.sess.run([self.init] + [i.initializer for i in self.iterators if i._initializer is not None])

  def start(self):
    self.hook.after_create_session(self.sess)

  def steps(self, count):
    options = tf.RunOptions(timeout_in_ms=30000)
    return [int(self.sess.run(self.step, options=options)) for _ in range(count)]

  def wait_until_full(self):
    """Waits until every producer waits for room."""
    test_util.wait_until(lambda: all(stats.waiting_puts == stats.num_threads for stats in tf.staging.stats(self.sess)))
