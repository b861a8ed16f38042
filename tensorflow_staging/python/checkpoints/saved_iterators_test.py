# SPDX-License-Identifier: Apache-2.0
"""A restored program goes on with the record after the last one that a step had taken."""

import collections
import contextlib
import itertools
import os
import time
from concurrent import futures

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import numbers_programs
from tensorflow_staging.python.testing import test_util

# How often a program restores while its stages begin.
_RESTORES = int(os.environ.get("STAGING_REPEATS", "20"))


@pytest.fixture(params=numbers_programs.KINDS)
def program(request):
  build, smart_stage = numbers_programs.KINDS[request.param]

  def make(**options):
    return numbers_programs.Program(build, smart_stage, **options)

  make.has_stage = request.param != "no_stage"
  return make


def test_training_resumes_with_exactly_the_next_record(program, tmp_path):
  with program(capacity=4) as first:
    first.initialise()
    first.start()
    assert first.steps(7) == list(range(7))
    first.wait_until_full()
    is_staged = bool(tf.staging.stats(first.sess))
    assert is_staged == program.has_stage
    path = first.saver.save(first.sess, str(tmp_path / "model"))
    # The save changes nothing for this session.
    assert first.steps(7) == list(range(7, 14))
  for capacity in (1, 9):
    with program(capacity=capacity) as second:
      second.saver.restore(second.sess, path)
      second.start()
      assert second.steps(12) == list(range(7, 19))


def test_a_session_of_a_server_resumes(program, tmp_path):
  server = tf.train.Server.create_local_server()
  path = None
  for first_number in (0, 5, 10):
    with program(target=server.target) as training:
      if path is None:
        training.initialise()
      else:
        training.saver.restore(training.sess, path)
      training.start()
      assert training.steps(5) == list(range(first_number, first_number + 5))
      path = training.saver.save(training.sess, str(tmp_path / "model"))
      training.steps(3)


def test_a_restore_while_the_stages_run_goes_back(program, tmp_path):
  with program() as training:
    training.initialise()
    training.start()
    for first in (0, 5, 10):
      assert training.steps(5) == list(range(first, first + 5))
      path = training.saver.save(training.sess, str(tmp_path / "model"), global_step=first)
    for _ in range(3):
      assert training.steps(3) == [15, 16, 17]
      training.saver.restore(training.sess, path)


_REINITIALISED = ("smart_stage", "staged", "staged_and_smart_stage", "chain", "staged_join", "no_stage")


@pytest.mark.parametrize("program", _REINITIALISED, indirect=True)
def test_an_initialiser_after_a_restore_continues_until_a_step_has_a_record(program, tmp_path):
  with program() as saved:
    saved.initialise()
    saved.start()
    assert saved.steps(3) == [0, 1, 2]
    saved.wait_until_full()
    path = saved.saver.save(saved.sess, str(tmp_path / "model"))
  with program() as restored:
    restored.initialise()
    restored.saver.restore(restored.sess, path)
    restored.start()
    for _ in range(2):
      # What the stages have read ahead is not in use yet.
      restored.wait_until_full()
      restored.initialise()
    assert restored.steps(1) == [3]
    restored.initialise()
    assert restored.steps(9) == list(range(9))


def test_data_of_several_functions_are_the_same_each_time_they_are_given(tmp_path):
  dataset = tf.data.Dataset.range(100).map(lambda n: n + 1).map(lambda n: n - 1).batch(1).map(lambda n: n[0])
  iterator = tf.data.make_initializable_iterator(dataset)
  number = iterator.get_next()
  tf.staging.save_iterators()
  saver = tf.train.Saver()
  with tf.Session() as sess:
    sess.run(iterator.initializer)
    assert [sess.run(number) for _ in range(3)] == [0, 1, 2]
    path = saver.save(sess, str(tmp_path / "model"))
    for _ in range(20):
      saver.restore(sess, path)
      for _ in range(6):
        sess.run(iterator.initializer)
      assert sess.run(number) == 3


def test_a_restore_after_the_end_of_the_data_goes_back(program, tmp_path):
  with program(stop=12) as training:
    training.initialise()
    training.start()
    assert training.steps(3) == [0, 1, 2]
    path = training.saver.save(training.sess, str(tmp_path / "model"))
    for _ in range(3):
      assert training.steps(9) == list(range(3, 12))
      with pytest.raises(tf.errors.OutOfRangeError):
        training.steps(1)
      training.saver.restore(training.sess, path)


def test_the_last_checkpoint_after_the_hook_has_ended_has_every_record(program, tmp_path):
  with program() as first:
    first.initialise()
    first.start()
    assert first.steps(3) == [0, 1, 2]
    first.hook.end(first.sess)
    path = first.saver.save(first.sess, str(tmp_path / "model"))
    first.start()
    assert first.steps(9) == list(range(3, 12))
  with program() as second:
    second.saver.restore(second.sess, path)
    second.start()
    assert second.steps(9) == list(range(3, 12))


def test_a_checkpoint_at_the_end_of_the_data(tmp_path):
  with numbers_programs.Program(numbers_programs.numbers, True, capacity=8, stop=5) as first:
    first.initialise()
    first.start()
    assert first.steps(2) == [0, 1]
    test_util.wait_until(lambda: tf.staging.stats(first.sess)[0].records == 3)
    path = first.saver.save(first.sess, str(tmp_path / "model"))
  with numbers_programs.Program(numbers_programs.numbers, True, capacity=1, stop=5) as second:
    second.saver.restore(second.sess, path)
    second.start()
    assert second.steps(3) == [2, 3, 4]
    with pytest.raises(tf.errors.OutOfRangeError):
      second.steps(1)


@pytest.mark.parametrize("threads", [2, 8])
def test_several_producers_lose_and_repeat_nothing(threads, tmp_path):
  def build(**_):
    return numbers_programs.numbers(stop=200)

  seen = []
  path = None
  for _ in range(4):
    with numbers_programs.Program(build, True, capacity=3, num_threads=threads) as program:
      if path is None:
        program.initialise()
      else:
        program.saver.restore(program.sess, path)
      program.start()
      seen += program.steps(40)
      path = program.saver.save(program.sess, str(tmp_path / "model"))
      program.steps(20)
  with numbers_programs.Program(build, True, capacity=3, num_threads=threads) as program:
    program.saver.restore(program.sess, path)
    program.start()
    seen += program.steps(40)
    with pytest.raises(tf.errors.OutOfRangeError):
      program.steps(1)
  assert sorted(seen) == list(range(200))


@pytest.mark.parametrize("smart_stage", [False, True])
def test_a_stage_that_reads_some_of_its_iterators_in_each_run(smart_stage, tmp_path):
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = smart_stage
  got, path = [], None
  for steps, capacity in 3 * ((7, 3), (5, 1), (7, 8)):
    with tf.Graph().as_default():
      turns = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices([True, False]).repeat())
      one = tf.data.make_initializable_iterator(tf.data.Dataset.range(100))
      two = tf.data.make_initializable_iterator(tf.data.Dataset.range(100, 200))
      number = tf.staged(tf.cond(turns.get_next(), one.get_next, two.get_next), capacity=capacity)
      tf.staging.save_iterators(one, two, turns)
      saver = tf.train.Saver([tf.train.get_or_create_global_step()] + tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
      with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        if path is not None:
          saver.restore(sess, path)
        sess.run([iterator.initializer for iterator in (one, two, turns)])
        with tf.make_prefetch_hook().running(sess):
          got += [int(sess.run(number)) for _ in range(steps)]
          path = saver.save(sess, str(tmp_path / "model"), global_step=len(got))
  assert got == [n // 2 + 100 * (n % 2) for n in range(len(got))]


def _pairs(make_iterator):
  one, two = (make_iterator(tf.data.Dataset.range(100)) for _ in range(2))
  return [one, two], one.get_next() * 100 + two.get_next()


def _chain(make_iterator):
  one, two = (make_iterator(tf.data.Dataset.range(100)) for _ in range(2))
  number = tf.staged(one.get_next(), capacity=2)
  with tf.control_dependencies([number]):
    return [one, two], number * 100 + two.get_next()


def _seldom_two(make_iterator):
  is_one = make_iterator(tf.data.Dataset.range(100).map(lambda n: n % 8 < 5))
  one, two = (make_iterator(tf.data.Dataset.range(100)) for _ in range(2))
  return [is_one, one, two], tf.cond(is_one.get_next(), one.get_next, lambda: two.get_next() + 100)


def _set_up(iterators):
  """Returns ops after which each iterator has a position."""
  if iterators[0]._initializer is None:
    return [iterator.string_handle() for iterator in iterators]
  return [iterator.initializer for iterator in iterators]


@pytest.mark.parametrize("build, steps_before, expected", [
    (_pairs, 0, [101 * n for n in range(8)]),
    (_chain, 0, [101 * n for n in range(8)]),
    (_seldom_two, 2, [2, 3, 4, 100, 101, 102, 5, 6]),
])
@pytest.mark.parametrize("make_iterator", [tf.data.make_initializable_iterator, tf.data.make_one_shot_iterator])
def test_a_stage_that_begins_to_read_an_iterator_while_it_is_saved(
    make_iterator, build, steps_before, expected, tmp_path):
  path = str(tmp_path / "positions")
  with tf.Graph().as_default():
    iterators, number = build(make_iterator)
    number = tf.staged(number, capacity=3)
    # Saves the last iterator before the others, and tells when it has.
    is_saved, go_on = (tf.FIFOQueue(1, [tf.bool], [[]]) for _ in range(2))
    last = tf.raw_ops.SerializeIterator(resource_handle=iterators[-1]._iterator_resource)
    with tf.control_dependencies([last]):
      with tf.control_dependencies([is_saved.enqueue(True)]):
        go = go_on.dequeue()
    with tf.control_dependencies([go]):
      positions = [tf.raw_ops.SerializeIterator(resource_handle=it._iterator_resource) for it in iterators[:-1]]
      positions.append(last)
    names = [f"position_{i}" for i in range(len(positions))]
    save = tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=positions)
    wait, resume = is_saved.dequeue(), go_on.enqueue(True)
    with tf.Session() as sess, contextlib.ExitStack() as stack, futures.ThreadPoolExecutor() as threads:
      sess.run(_set_up(iterators))
      running = tf.make_prefetch_hook().running(sess)
      if steps_before:
        stack.enter_context(running)
        for _ in range(steps_before):
          sess.run(number)
      saving = threads.submit(sess.run, save)
      sess.run(wait)
      if not steps_before:
        stack.enter_context(running)
      # Empties the buffer, so that the stage reads on if nothing holds it.
      stepping = threads.submit(lambda: [sess.run(number) for _ in range(6)])
      time.sleep(0.3)
      sess.run(resume)
      saving.result(timeout=30)
      assert stepping.result(timeout=30) == expected[:6]

  with tf.Graph().as_default():
    iterators, number = build(make_iterator)
    number = tf.staged(number, capacity=3)
    positions = tf.raw_ops.RestoreV2(
        prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=[tf.variant] * len(names))
    restore = [
        tf.raw_ops.DeserializeIterator(resource_handle=iterator._iterator_resource, serialized=position)
        for iterator, position in zip(iterators, positions)
    ]
    with tf.Session() as sess:
      sess.run(_set_up(iterators))
      sess.run(restore)
      with tf.make_prefetch_hook().running(sess):
        assert [sess.run(number) for _ in expected] == expected


# More than the stage has of the first iterator.
_SWITCHED_STEPS = 12


class _SwitchedStage:
  """A program whose stage reads the iterator that a variable chooses, and whose save has the second one first."""

  def __init__(self, path, build):
    self._path, self._names = path, ["one", "two"]
    self.one, self.two = (
        tf.data.make_initializable_iterator(tf.data.Dataset.range(begin, begin + 100)) for begin in (0, 100))
    self._is_saved, self._go_on = (tf.FIFOQueue(1, [tf.bool], [[]]) for _ in range(2))
    self.handle = tf.Variable("", trainable=False)
    self._choose_one, self.choose_two = (self.handle.assign(it.string_handle()) for it in (self.one, self.two))
    # How often the stage has come to a read of each iterator, by handle.
    self._tries = collections.Counter()
    self.number = build(self)

  def read_chosen(self):
    def note(handle):
      self._tries[handle] += 1
      return np.int64(0)

    with tf.control_dependencies([tf.py_func(note, [self.handle], tf.int64)]):
      return tf.data.Iterator.from_string_handle(self.handle, tf.int64, []).get_next()

  def initialise(self, sess):
    sess.run([self.one.initializer, self.two.initializer, self._choose_one])

  def save_while_it_switches(self, sess):
    """Lets the stage go on to the second iterator between the saves of the two. Returns the result of the save."""
    saved_two = tf.raw_ops.SerializeIterator(resource_handle=self.two._iterator_resource)
    with tf.control_dependencies([saved_two]):
      with tf.control_dependencies([self._is_saved.enqueue(True)]):
        go = self._go_on.dequeue()
    with tf.control_dependencies([go]):
      saved_one = tf.raw_ops.SerializeIterator(resource_handle=self.one._iterator_resource)
    save = tf.raw_ops.SaveV2(
        prefix=self._path, tensor_names=self._names, shape_and_slices=["", ""], tensors=[saved_one, saved_two])
    wait, resume = self._is_saved.dequeue(), self._go_on.enqueue(True)
    got = []

    def step():
      for _ in range(_SWITCHED_STEPS):
        got.append(sess.run(self.number))

    with futures.ThreadPoolExecutor() as threads:
      saved = threads.submit(sess.run, save)
      sess.run(wait)
      sess.run(self.choose_two)
      # Empties the buffer, so that the stage reads the iterator that has been saved, if nothing holds it.
      stepping = threads.submit(step)
      test_util.wait_until(lambda: self._has_met_the_save(sess, got))
      # A run that nothing holds reads meanwhile, at no event that the test could wait for if nothing is wrong.
      time.sleep(0.3)
      sess.run(resume)
      stepping.result(timeout=30)
    return saved

  def _has_met_the_save(self, sess, got):
    """Whether the stage has come to the second iterator and steps wait for it, or is full again after all steps."""
    stats = tf.staging.stats(sess)[0]
    waits = self._tries[sess.run(self.handle)] > 0 and stats.waiting_takes > 0 and max(got, default=0) < 100
    return waits or (len(got) == _SWITCHED_STEPS and stats.records == stats.capacity)

  def restore(self, sess):
    positions = tf.raw_ops.RestoreV2(
        prefix=self._path, tensor_names=self._names, shape_and_slices=["", ""], dtypes=[tf.variant] * 2)
    sess.run([
        tf.raw_ops.DeserializeIterator(resource_handle=iterator._iterator_resource, serialized=position)
        for iterator, position in zip((self.one, self.two), positions)
    ])


def _chosen_alone(program):
  return tf.staged(program.read_chosen(), capacity=2)


def _chosen_with_a_feed(program):
  zero = tf.placeholder_with_default(tf.constant(0, tf.int64), [])
  return tf.staged(
      program.read_chosen() + zero, capacity=2, feed_list=[zero], feed_generator=lambda: itertools.repeat([0]))


def _second_after_the_first(program):
  number = program.one.get_next()
  is_one = tf.equal(program.handle, program.one.string_handle())

  def read_both():
    with tf.control_dependencies([number]):
      return program.read_chosen()

  return tf.staged(tf.cond(is_one, lambda: number * 1, read_both), capacity=2)


def _save_switched_stage(path, build):
  with tf.Graph().as_default(), tf.Session() as sess:
    program = _SwitchedStage(path, build)
    program.initialise(sess)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(program.number) == 0
      return program.save_while_it_switches(sess)


@pytest.mark.parametrize("build", [_chosen_alone, _chosen_with_a_feed, _second_after_the_first])
def test_a_running_stage_that_begins_to_read_an_iterator_while_it_is_saved(build, tmp_path):
  path = str(tmp_path / "positions")
  _save_switched_stage(path, build).result(timeout=30)
  with tf.Graph().as_default(), tf.Session() as sess:
    program = _SwitchedStage(path, build)
    program.initialise(sess)
    sess.run(program.choose_two)
    program.restore(sess)
    with tf.make_prefetch_hook().running(sess):
      assert [sess.run(program.number) for _ in range(6)] == list(range(100, 106))


@pytest.mark.parametrize("is_of_region", [False, True])
@pytest.mark.parametrize("stages_again", [True, False])
def test_an_error_that_no_step_has_got_is_in_the_checkpoint(is_of_region, stages_again, tmp_path):
  """One of the iterator has left it, and one of the region comes of its element: either comes again."""
  def build(stages):
    dataset = tf.data.Dataset.range(8)
    quotient = lambda n: 12 // (n - 2)
    iterator = tf.data.make_initializable_iterator(dataset if is_of_region else dataset.map(quotient))
    number = quotient(iterator.get_next()) if is_of_region else iterator.get_next()
    record = tf.staged(number, capacity=4) if stages else number
    tf.staging.save_iterators(iterator)
    return iterator, record, tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))

  def rest(sess, record):
    assert [sess.run(record) for _ in range(2)] == [-6, -12]
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
      sess.run(record)
    assert [sess.run(record) for _ in range(2)] == [12, 6]

  path = str(tmp_path / "positions")
  with tf.Graph().as_default(), tf.Session() as sess:
    iterator, record, saver = build(stages=True)
    sess.run(iterator.initializer)
    with tf.make_prefetch_hook().running(sess):
      test_util.wait_until(lambda: tf.staging.stats(sess)[0].error)
      saver.save(sess, path)
      rest(sess, record)
  with tf.Graph().as_default(), tf.Session() as sess:
    iterator, record, saver = build(stages_again)
    saver.restore(sess, path)
    with tf.make_prefetch_hook().running(sess) if stages_again else contextlib.nullcontext():
      rest(sess, record)


def _chosen_handle(make_iterator):
  is_one = make_iterator(tf.data.Dataset.range(1000).map(lambda n: n % 8 < 5))
  one, two = (make_iterator(tf.data.Dataset.range(1000)) for _ in range(2))

  @tf.function
  def read(handle):
    return tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()

  return [is_one, one, two], read(tf.where(is_one.get_next(), one.string_handle(), two.string_handle()))


@pytest.mark.parametrize("build", [_pairs, _seldom_two, _chosen_handle])
def test_a_restore_while_a_stage_begins_to_read(build, tmp_path):
  with tf.Graph().as_default():
    iterators, number = build(tf.data.make_initializable_iterator)
    number = tf.staged(number, capacity=2)
    tf.staging.save_iterators(*iterators)
    saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
    initializers = [iterator.initializer for iterator in iterators]
    with tf.Session() as sess:
      sess.run(initializers)
      with tf.make_prefetch_hook().running(sess):
        for _ in range(5):
          sess.run(number)
        path = saver.save(sess, str(tmp_path / "model"))
        expected = [sess.run(number) for _ in range(6)]
    for attempt in range(_RESTORES):
      with tf.Session() as sess:
        sess.run(initializers)
        with tf.make_prefetch_hook().running(sess):
          time.sleep(0.001 * (attempt % 4))
          saver.restore(sess, path)
          assert [sess.run(number) for _ in range(6)] == expected, attempt


def test_tensors_of_every_kind_come_back(tmp_path):
  def build(**_):
    dataset = tf.data.Dataset.range(100).map(
        lambda n: {
            "text": tf.strings.as_string(n),
            "sparse": tf.sparse.from_dense(tf.one_hot(n % 3, 3)),
            "ragged": tf.RaggedTensor.from_row_lengths(tf.range(n % 4), [n % 4]),
            "empty": tf.zeros([0, 2], tf.bool),
        })
    iterator = tf.data.make_initializable_iterator(dataset)
    record = tf.staged(iterator.get_next(), capacity=4)
    lines = tf.strings.join([
        record["text"],
        tf.strings.as_string(tf.argmax(tf.sparse.to_dense(record["sparse"]), output_type=tf.int64)),
        tf.strings.as_string(tf.size(record["ragged"].flat_values)),
        tf.strings.as_string(tf.size(record["empty"])),
    ], separator=",")
    return iterator, tf.string_to_hash_bucket_fast(lines, 1 << 40)

  with numbers_programs.Program(build, False) as first:
    first.initialise()
    first.start()
    first.steps(2)
    path = first.saver.save(first.sess, str(tmp_path / "model"))
    expected = first.steps(10)
  with numbers_programs.Program(build, False) as second:
    second.saver.restore(second.sess, path)
    second.start()
    assert second.steps(10) == expected


def test_another_model_goes_on_with_the_next_element(tmp_path):
  with numbers_programs.Program(numbers_programs.numbers, True) as first:
    first.initialise()
    first.start()
    first.steps(1)
    first.wait_until_full()
    path = first.saver.save(first.sess, str(tmp_path / "model"))

  def other(**_):
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000).map(lambda n: n + 1 - 1).prefetch(2))
    return iterator, iterator.get_next() + 1

  kinds = [(other, True), (numbers_programs.numbers, False), (numbers_programs.staged_numbers, False)]
  for build, smart_stage in kinds:
    with numbers_programs.Program(build, smart_stage) as second:
      second.saver.restore(second.sess, path)
      second.start()
      added = 1 if build is other else 0
      assert second.steps(10) == list(range(1 + added, 11 + added))
