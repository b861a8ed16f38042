# SPDX-License-Identifier: Apache-2.0
"""A restored program goes on with the record after the last one that a step had taken."""

import gc
import re
import weakref

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


def _numbers(stop=1000, **_):
  """Returns an iterator over numbers, and a step that yields the next one and needs a variable."""
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(stop).map(lambda n: n + 1 - 1).prefetch(2))
  return iterator, iterator.get_next() * 1


def _staged_numbers(stop=1000, **arguments):
  iterator, number = _numbers(stop)
  return iterator, tf.staged(number, **arguments)


def _chained_numbers(stop=1000, **arguments):
  iterator, number = _numbers(stop)
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


_PROGRAMS = {
    "smart_stage": (_numbers, True),
    "staged": (_staged_numbers, False),
    "staged_and_smart_stage": (_staged_numbers, True),
    "chain": (_chained_numbers, False),
    "join": (_joined_numbers, True),
    "staged_join": (_explicitly_joined_numbers, False),
    "one_shot": (_one_shot_numbers, True),
    "staged_one_shot": (_staged_one_shot_numbers, False),
    "no_stage": (_numbers, False),
}


class _Program:
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


@pytest.fixture(params=_PROGRAMS)
def program(request):
  build, smart_stage = _PROGRAMS[request.param]

  def make(**options):
    return _Program(build, smart_stage, **options)

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
  with _Program(_numbers, True, capacity=8, stop=5) as first:
    first.initialise()
    first.start()
    assert first.steps(2) == [0, 1]
    test_util.wait_until(lambda: tf.staging.stats(first.sess)[0].records == 3)
    path = first.saver.save(first.sess, str(tmp_path / "model"))
  with _Program(_numbers, True, capacity=1, stop=5) as second:
    second.saver.restore(second.sess, path)
    second.start()
    assert second.steps(3) == [2, 3, 4]
    with pytest.raises(tf.errors.OutOfRangeError):
      second.steps(1)


@pytest.mark.parametrize("threads", [2, 8])
def test_several_producers_lose_and_repeat_nothing(threads, tmp_path):
  def build(**_):
    return _numbers(stop=200)

  seen = []
  path = None
  for _ in range(4):
    with _Program(build, True, capacity=3, num_threads=threads) as program:
      if path is None:
        program.initialise()
      else:
        program.saver.restore(program.sess, path)
      program.start()
      seen += program.steps(40)
      path = program.saver.save(program.sess, str(tmp_path / "model"))
      program.steps(20)
  with _Program(build, True, capacity=3, num_threads=threads) as program:
    program.saver.restore(program.sess, path)
    program.start()
    seen += program.steps(40)
    with pytest.raises(tf.errors.OutOfRangeError):
      program.steps(1)
  assert sorted(seen) == list(range(200))


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

  with _Program(build, False) as first:
    first.initialise()
    first.start()
    first.steps(2)
    path = first.saver.save(first.sess, str(tmp_path / "model"))
    expected = first.steps(10)
  with _Program(build, False) as second:
    second.saver.restore(second.sess, path)
    second.start()
    assert second.steps(10) == expected


def test_a_record_that_cannot_be_saved_is_named(tmp_path):
  iterator, number = _numbers()
  dataset = tf.data.experimental.to_variant(tf.data.Dataset.range(number))
  record = tf.staged({"data": dataset, "number": number})
  tf.staging.save_iterators(iterator)
  tf.get_variable("v", initializer=0)
  saver = tf.train.Saver()
  with smart_stage_sessions.smart_stage_session(iterator.initializer) as sess:
    sess.run(record["number"])
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].put > 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)stage 'prefetch' cannot be saved.*RangeDataset.*"):
      saver.save(sess, str(tmp_path / "model"))
    # Training goes on.
    assert sess.run(record["number"]) == 1


def test_state_outside_the_dataset_is_an_error_unless_it_is_ignored(tmp_path):
  for policy in ("fail", "ignore"):
    with tf.Graph().as_default():
      dataset = tf.data.Dataset.range(100).map(lambda n: tf.numpy_function(lambda n: n, [n], tf.int64))
      iterator = tf.data.make_initializable_iterator(dataset)
      number = tf.staged(iterator.get_next())
      tf.staging.save_iterators(iterator, external_state_policy=policy)
      saver = tf.train.Saver()
      with smart_stage_sessions.smart_stage_session(iterator.initializer) as sess:
        assert sess.run(number) == 0
        if policy == "fail":
          with pytest.raises(tf.errors.FailedPreconditionError, match="PyFunc is stateful"):
            saver.save(sess, str(tmp_path / "model"))
        else:
          saver.restore(sess, saver.save(sess, str(tmp_path / "model")))
        assert sess.run(number) == 1


def test_records_of_another_model_are_refused(tmp_path):
  with _Program(_numbers, True) as first:
    first.initialise()
    first.start()
    first.steps(1)
    first.wait_until_full()
    path = first.saver.save(first.sess, str(tmp_path / "model"))

  def other(**_):
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000).map(lambda n: n + 1 - 1).prefetch(2))
    return iterator, iterator.get_next() + 1

  for build, smart_stage, message in [
      (other, True, "records of stage 'prefetch'.*hold .*mul:0; the stage carries .*add:0"),
      (_numbers, False, "records of stage 'prefetch'.*something else than a stage")]:
    with _Program(build, smart_stage) as second, pytest.raises(tf.errors.OpError, match=message):
      second.saver.restore(second.sess, path)
      second.start()
      second.steps(1)


def test_tensorflows_own_saveable_keeps_the_records_too(tmp_path):
  def numbers_after(count, restore_from=None):
    with tf.Graph().as_default():
      iterator, number = _numbers()
      step = number + tf.get_variable("v", initializer=np.int64(0))
      tf.add_to_collection(
          tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(iterator))
      saver = tf.train.Saver()
      with smart_stage_sessions.smart_stage_session(iterator.initializer, capacity=5) as sess:
        # Takes a record, too.
        assert "TensorBufferTake" in smart_stage_sessions.staged_ops(sess, step)
        if restore_from:
          saver.restore(sess, restore_from)
        numbers = [int(sess.run(step)) for _ in range(count)]
        return numbers, saver.save(sess, str(tmp_path / "model"))

  _, path = numbers_after(4)
  assert numbers_after(3, path)[0] == [5, 6, 7]


@pytest.mark.parametrize("staged", [False, True])
def test_a_restore_by_tensorflows_own_saveable_is_tensorflows(staged, tmp_path):
  """It gives the position to whichever dataset the iterator has, and an initialiser begins anew after it."""
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  first, second = (iterator.make_initializer(tf.data.Dataset.range(begin, begin + 9)) for begin in (0, 100))
  number = iterator.get_next() * 1
  if staged:
    number = tf.staged(number, capacity=2)
  tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(iterator))
  saver = tf.train.Saver()

  def numbers(sess):
    with tf.make_prefetch_hook().running(sess):
      return [int(sess.run(number)) for _ in range(2)]

  with tf.Session() as sess:
    sess.run(first)
    assert numbers(sess) == [0, 1]
    path = saver.save(sess, str(tmp_path / "model"))
  with tf.Session() as sess:
    sess.run(first)
    saver.restore(sess, path)
    assert numbers(sess) == [2, 3]
    saver.restore(sess, path)
    sess.run(first)
    assert numbers(sess) == [0, 1]
    sess.run(second)
    saver.restore(sess, path)
    # The position of a range is its next number.
    assert numbers(sess) == [2, 3]


def test_iterators_whose_initialiser_a_restore_cannot_run(tmp_path):
  """One that needs a feed, and one that has several: they keep the restored position until the stages start."""

  def numbers_after(count, restore_from=None):
    with tf.Graph().as_default():
      stop = tf.placeholder(tf.int64, [])
      fed = tf.data.make_initializable_iterator(tf.data.Dataset.range(stop))
      several = tf.data.Iterator.from_structure(tf.int64, [])
      train = several.make_initializer(tf.data.Dataset.range(100))
      several.make_initializer(tf.data.Dataset.range(7))
      number = tf.staged(fed.get_next() + several.get_next(), capacity=3)
      tf.staging.save_iterators()
      saver = tf.train.Saver()
      with tf.Session() as sess:
        if restore_from:
          saver.restore(sess, restore_from)
        sess.run([fed.initializer, train], {stop: 100})
        with tf.make_prefetch_hook().running(sess):
          numbers = [int(sess.run(number)) for _ in range(count)]
          return numbers, saver.save(sess, str(tmp_path / "model"))

  first, path = numbers_after(4)
  assert first + numbers_after(4, path)[0] == list(range(0, 16, 2))


def test_a_graph_whose_iterators_are_saved_can_be_collected(tmp_path):
  graph = tf.Graph()
  with graph.as_default():
    iterator, number = _staged_numbers(capacity=3)
    tf.staging.save_iterators(iterator)
    saver = tf.train.Saver()
    with tf.Session() as sess:
      sess.run(iterator.initializer)
      with tf.make_prefetch_hook().running(sess):
        assert sess.run(number) == 0
        saver.save(sess, str(tmp_path / "model"))
  collected = weakref.ref(graph)
  del graph, iterator, number, saver, sess
  gc.collect()
  assert collected() is None


def test_what_a_generator_yields_is_left_out(tmp_path):
  fed = tf.placeholder(tf.int64, [])
  generator = dict(feed_list=[fed], feed_generator=lambda: ([value] for value in range(100)))
  tf.staged(fed, **generator)
  with pytest.raises(ValueError, match="what a feed_generator yields cannot be saved"):
    tf.staging.save_iterators()
  iterator, number = _numbers()
  record = tf.staged([number, fed], **generator)
  tf.staging.save_iterators()
  tf.get_variable("v", initializer=0)
  saver = tf.train.Saver()
  with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), iterator.initializer])
    # As a monitored session does, it saves before the stages start.
    saver.save(sess, str(tmp_path / "start"))
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(record) == [0, 0]
      path = saver.save(sess, str(tmp_path / "model"))
      sess.run(record)
      saver.restore(sess, path)
      assert sess.run(record)[0] == 1


def test_iterators_of_two_imports_keep_their_own_positions(tmp_path):
  with tf.name_scope("model"):
    # A restore holds the position of an iterator whose initialiser needs feeds.
    count = tf.placeholder(tf.int64, [], name="count")
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(count))
    number = tf.identity(iterator.get_next(), name="number")
    tf.staging.save_iterators(iterator)
    saver = tf.train.Saver()
  tf.staging.save_iterators(_numbers()[0])
  paths = []
  with tf.Session() as sess:
    sess.run(iterator.initializer, {count: 100})
    for steps in (2, 3):
      for _ in range(steps):
        sess.run(number)
      paths.append(saver.save(sess, str(tmp_path / "model"), steps, write_meta_graph=False))
  definition = tf.train.export_meta_graph(export_scope="model")
  with tf.Graph().as_default():
    scopes = ("first", "second")
    for scope in scopes:
      tf.train.import_meta_graph(definition, import_scope=scope)
    with tf.Session() as sess:
      for scope, path in zip(scopes, paths):
        sess.run(f"{scope}/{iterator.initializer.name.partition('/')[2]}", {f"{scope}/count:0": 100})
        sess.run(f"{scope}/save/restore_all", {f"{scope}/save/Const:0": path})
      with tf.make_prefetch_hook().running(sess):
        assert sess.run([f"{scope}/number:0" for scope in scopes]) == [2, 5]


def test_wrong_arguments_are_refused():
  with pytest.raises(ValueError, match="has no iterator"):
    tf.staging.save_iterators()
  iterator, _ = _numbers()
  with pytest.raises(TypeError, match="takes iterators.*got 3 of type int"):
    tf.staging.save_iterators(3)
  with pytest.raises(ValueError, match=re.escape("['fail', 'ignore', 'warn'], got 'never'")):
    tf.staging.save_iterators(iterator, external_state_policy="never")
  with tf.Graph().as_default(), pytest.raises(ValueError, match="belongs to another graph"):
    tf.staging.save_iterators(iterator)
  tf.staging.save_iterators(iterator)
  with pytest.raises(ValueError, match="is saved already, with external_state_policy='fail', so it cannot be 'warn'"):
    tf.staging.save_iterators(iterator, external_state_policy="warn")
  tf.staging.save_iterators()
  # Without arguments, the policy is for the iterators that are not saved yet.
  tf.staging.save_iterators(external_state_policy="ignore")
  assert len(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)) == 1
