# SPDX-License-Identifier: Apache-2.0
"""Restarts, further epochs and checkpoints, for each way to stage what a program reads in some uncommon way.

Each of these has its tests elsewhere. Here they meet, in a table, and each cell is what a program without a stage does.
"""

import os
import time

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

# More than all stages of a chain hold.
_COUNT = 12
_CAPACITY = 3
# How often the data of a chain begins anew.
_BEGINNINGS = int(os.environ.get("STAGING_REPEATS", "200"))

_WAYS = ("unstaged", "staged", "smart_stage", "both", "chain", "join")
_SITUATIONS = ("second_consumer", "function", "fed_handle", "failing_initialiser", "branch_not_taken")


class _Program:
  """A program that reads its iterator in an uncommon way, or nearly changes it, and its session."""

  def __init__(self, way, situation):
    self._situation = situation
    self._step_feeds = {}
    with tf.Graph().as_default(), control_flow.version(1):
      self._build(way)
      config = tf.ConfigProto()
      if way in ("smart_stage", "both"):
        config = smart_stage_sessions.smart_stage_config(capacity=_CAPACITY)
      config.operation_timeout_in_ms = 20000
      self.sess = tf.Session(config=config)
    self.sess.run(self._initialise_variables)
    if self._handles and way in ("unstaged", "smart_stage"):
      self._step_feeds = {handle: self.sess.run(value) for handle, value in self._handles.items()}
    self._hook = tf.make_prefetch_hook()
    # Of two functions that come to the end of their data at once, one may be cancelled first, without a stage, too.
    self._ends = (tf.errors.OutOfRangeError,)
    if way == "join" and situation == "function":
      self._ends += (tf.errors.CancelledError,)

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self._hook.end(self.sess)
    self.sess.close()

  def _build(self, way):
    self._values, self._labels = (tf.placeholder_with_default(tf.range(_COUNT, dtype=tf.int64), [None]) for _ in "ab")
    self._flag = tf.placeholder_with_default(False, [])
    self._handles = {}
    self._initializers = []
    self._branches = []
    elements = [self._element() for _ in range(2 if way == "join" else 1)]
    numbers = [number for number, _ in elements]
    number = numbers[0] if len(numbers) == 1 else (numbers[0] + numbers[1]) // 2
    if way in ("staged", "both", "chain", "join"):
      number = tf.staged(number + 0, capacity=_CAPACITY, feed_dict=self._handles)
    if way == "chain":
      number = tf.staged(number * 1, capacity=_CAPACITY)
    total = tf.get_variable("total", [], tf.int64, initializer=tf.zeros_initializer())
    self._step = {"number": number, "train": tf.assign_add(total, number)}
    if self._situation == "second_consumer":
      self._step["summary"] = tf.summary.scalar("label", tf.cast(elements[0][1], tf.float32))
    tf.staging.save_iterators()
    self.saver = tf.train.Saver()
    self._initialise_variables = tf.global_variables_initializer()

  def _element(self):
    """Adds an iterator; returns a number and its label."""
    dataset = tf.data.Dataset.from_tensor_slices((self._values, self._labels))
    iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset))
    self._initializers.append(iterator.make_initializer(dataset))
    if self._situation == "branch_not_taken":
      def initialise():
        with tf.control_dependencies([iterator.make_initializer(dataset, name="in_a_branch")]):
          return tf.constant(1)

      self._branches.append(tf.cond(self._flag, initialise, lambda: tf.constant(0)))
    if self._situation == "function":
      return tf.function(iterator.get_next)()
    if self._situation == "fed_handle":
      handle = tf.placeholder(tf.string, [])
      self._handles[handle] = iterator.string_handle()
      iterator = tf.data.Iterator.from_string_handle(
          handle, tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset))
    return iterator.get_next()

  def initialise(self):
    self.sess.run(self._initializers)

  def start(self):
    self._hook.after_create_session(self.sess)

  def change_nothing(self):
    """Does what looks like a change of the iterator."""
    if self._situation == "failing_initialiser":
      with pytest.raises(tf.errors.InvalidArgumentError):
        self.sess.run(self._initializers, {self._labels: [1, 2, 3]})
    if self._situation == "branch_not_taken":
      assert self.sess.run(self._branches) == [0] * len(self._branches)

  def wait_until_full(self):
    """Waits until each stage holds what it can."""
    test_util.wait_until(lambda: all(stage.waiting_puts == 1 for stage in tf.staging.stats(self.sess)))

  def steps(self, count):
    return [self._run() for _ in range(count)]

  def drain(self):
    numbers = []
    with pytest.raises(self._ends):
      while True:
        numbers.append(self._run())
    return numbers

  def _run(self):
    got = self.sess.run(self._step, self._step_feeds)
    if "summary" in got:
      assert tf.Summary.FromString(got["summary"]).value[0].simple_value == got["number"]
    return got["number"]


@pytest.fixture(params=_SITUATIONS)
def situation(request):
  return request.param


@pytest.fixture(params=_WAYS)
def way(request):
  return request.param


@pytest.fixture
def program(way, situation):
  with _Program(way, situation) as new_program:
    new_program.initialise()
    new_program.start()
    yield new_program


def test_a_restart_in_the_middle(program):
  assert program.steps(2) == [0, 1]
  program.wait_until_full()
  program.change_nothing()
  assert program.steps(2) == [2, 3]
  program.initialise()
  assert program.drain() == list(range(_COUNT))


def test_a_second_epoch(program):
  for _ in range(2):
    assert program.drain() == list(range(_COUNT))
    program.change_nothing()
    assert program.drain() == []
    program.initialise()
  assert program.steps(2) == [0, 1]


def test_a_checkpoint_while_records_wait(program, way, situation, tmp_path):
  assert program.steps(2) == [0, 1]
  program.wait_until_full()
  program.change_nothing()
  path = program.saver.save(program.sess, str(tmp_path / "model"))
  with _Program(way, situation) as restored:
    restored.saver.restore(restored.sess, path)
    restored.initialise()
    restored.change_nothing()
    restored.start()
    assert restored.drain() == list(range(2, _COUNT))
    restored.initialise()
    assert restored.drain() == list(range(_COUNT))
  # The save changes nothing for the session that saved.
  assert program.drain() == list(range(2, _COUNT))


@pytest.mark.parametrize("smart_stage", [False, True])
@pytest.mark.parametrize("taken", [2, 4])
def test_one_of_two_iterators_of_a_stage_begins_anew(taken, smart_stage):
  """The stage reads to the end of the short one, also where the program takes only some of its elements."""
  short = tf.data.make_initializable_iterator(tf.data.Dataset.range(4))
  long = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100, 1000))
  record = tf.staged((short.get_next(), long.get_next()), capacity=_CAPACITY)
  config = smart_stage_sessions.smart_stage_config(capacity=_CAPACITY) if smart_stage else tf.ConfigProto()
  config.operation_timeout_in_ms = 20000
  with tf.Session(config=config) as sess:
    sess.run(short.initializer)
    with tf.make_prefetch_hook().running(sess):
      for epoch in range(_BEGINNINGS // 2):
        got = [sess.run(record) for _ in range(taken)]
        assert got == [(n, 100 + epoch * taken + n) for n in range(taken)], epoch
        sess.run(short.initializer)


@pytest.mark.parametrize("capacity", [1, 4])
@pytest.mark.parametrize("first", ["one", "two"])
def test_the_iterators_of_a_chain_begin_anew_one_after_the_other(first, capacity):
  """Between the initialisers, after the end of the data, the later stage reads what has begun anew."""

  def slow(number):
    time.sleep(0.005)
    return number

  one = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
  two = tf.data.make_initializable_iterator(
      tf.data.Dataset.range(5).map(lambda n: tf.ensure_shape(tf.numpy_function(slow, [n], tf.int64), [])))
  record = tf.staged((tf.staged(one.get_next(), capacity=capacity), two.get_next()), capacity=capacity)
  initialisers = [one.initializer, two.initializer] if first == "one" else [two.initializer, one.initializer]
  with tf.Session() as sess:
    sess.run(initialisers)
    with tf.make_prefetch_hook().running(sess):
      for epoch in range(_BEGINNINGS // 4):
        assert test_util.drain(sess, record) == [(0, 0), (1, 1), (2, 2)], epoch
        for initialiser in initialisers:
          sess.run(initialiser)


@pytest.mark.parametrize("smart_stage", [False, True])
def test_an_error_that_no_step_has_got_comes_after_a_new_start(smart_stage):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(8).map(lambda n: 12 // (n - 2)))
  record = iterator.get_next()
  record = tf.as_string(record) if smart_stage else tf.staged(record, capacity=_CAPACITY)
  step = tf.strings.join([tf.as_string(tf.get_variable("variable", initializer=1)), tf.as_string(record)])
  config = smart_stage_sessions.smart_stage_config(capacity=_CAPACITY) if smart_stage else tf.ConfigProto()
  with tf.Session(config=config) as sess:
    sess.run([iterator.initializer, tf.global_variables_initializer()])
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(step) == b"1-6"
      test_util.wait_until(lambda: tf.staging.stats(sess)[0].error)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(step) == b"1-12"
      with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        sess.run(step)
      # A step has got it: the stage goes on behind the element, now and after another start.
      assert sess.run(step) == b"112"
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(step) == b"16"


@pytest.mark.parametrize("restores", [False, True])
def test_a_chain_whose_stages_each_read_an_iterator_begins_anew(restores, tmp_path):
  one, two = (tf.data.make_initializable_iterator(tf.data.Dataset.range(100)) for _ in range(2))
  number = tf.staged(tf.staged(one.get_next(), capacity=3) * 100 + two.get_next(), capacity=3)
  tf.staging.save_iterators(one, two)
  saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
  with tf.Session() as sess:
    initializers = [one.initializer, two.initializer]
    sess.run(initializers)
    path = saver.save(sess, str(tmp_path / "model"))
    with tf.make_prefetch_hook().running(sess):
      # What the stages are doing when the data begins anew differs each time.
      for attempt in range(_BEGINNINGS):
        steps = attempt % 7
        assert [sess.run(number) for _ in range(steps)] == [101 * n for n in range(steps)], attempt
        if restores:
          saver.restore(sess, path)
        else:
          sess.run(initializers)
