# SPDX-License-Identifier: Apache-2.0
"""A model with several towers, each with a `get_next` of one iterator, trains as without SmartStage.

A step of training takes one record, with an element of each tower. A run of one tower alone reads one element. Which
tower gets which element of a step is up to TensorFlow, without SmartStage, too.
"""

import random

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

# All sums and products of the model are exact in float64.
_RATE = 2.0**-10
_CAPACITY = 3


def _hashed(number: tf.Tensor) -> tf.Tensor:
  return tf.strings.to_number(tf.as_string(number * 3), tf.float64)


class _Towers:
  """The model in the default graph, and what it has to yield."""

  def __init__(self, count: int, elements: int, tower=_hashed):
    self.count, self.elements = count, elements
    self._iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(elements))
    self.weight = tf.get_variable("weight", initializer=tf.ones([], tf.float64), use_resource=True)
    self.numbers, self.losses = [], []
    for k in range(count):
      with tf.name_scope(f"tower_{k}"):
        self.numbers.append(self._iterator.get_next())
        self.losses.append(tower(self.numbers[-1]) * self.weight)
    self.train = tf.train.GradientDescentOptimizer(_RATE).minimize(tf.add_n(self.losses))
    tf.staging.save_iterators(self._iterator)
    self.saver = tf.train.Saver()
    self.initializers = [self.weight.initializer, self._iterator.initializer]
    self.begin_anew()

  def begin_anew(self) -> None:
    self.read, self.expected_weight = 0, 1.0

  def goes_on_as(self, other: "_Towers") -> None:
    self.read, self.expected_weight = other.read, other.expected_weight

  def initialize(self, sess: tf.Session) -> None:
    sess.run(self.initializers)
    self.begin_anew()

  def run(self, sess: tf.Session, towers: list[int], train: bool = False) -> bool:
    """Runs some of the towers and checks what they yield. Returns whether there were elements for all of them."""
    fetches = [[self.numbers[k] for k in towers], [self.losses[k] for k in towers], [self.train] * train]
    return self.check(lambda: sess.run(fetches), len(towers), train)

  def check(self, run, towers: int, train: bool = False) -> bool:
    """The same for a run that returns the numbers, the losses and more."""
    first = self.read
    self.read = min(first + towers, self.elements)
    if first + towers > self.elements:
      with pytest.raises(tf.errors.OutOfRangeError):
        run()
      return False
    numbers, losses, *_ = run()
    assert sorted(numbers) == list(range(first, first + towers))
    assert losses == [self.expected_weight * 3 * number for number in numbers]
    if train:
      self.expected_weight -= _RATE * 3 * float(sum(numbers))
    return True

  def step(self, sess: tf.Session) -> bool:
    return self.run(sess, list(range(self.count)), train=True)

  def assert_staged(self, sess: tf.Session) -> None:
    """Takes a step, of which the stage has computed all that precedes the weight."""
    ops = smart_stage_sessions.staged_ops(sess, [self.train, *self.losses])
    assert "TensorBufferTake" in ops and not {"IteratorGetNext", "AsString"} & ops, ops
    self.expected_weight -= _RATE * 3 * float(sum(range(self.read, self.read + self.count)))
    self.read += self.count


@pytest.fixture(params=[2, 4])
def towers(request) -> _Towers:
  return _Towers(request.param, elements=41)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_each_element_trains_once(towers, num_threads):
  with smart_stage_sessions.smart_stage_session(*towers.initializers, num_threads=num_threads) as sess:
    for _ in range(3):
      towers.assert_staged(sess)
      while towers.step(sess):
        pass
      assert sess.run(towers.weight) == towers.expected_weight
      # The end of the data has come for a single tower, too: a step has tried to use the last element.
      assert not towers.run(sess, [1])
      towers.initialize(sess)


def test_a_monitored_session_trains(towers):
  scaffold = tf.train.Scaffold(local_init_op=tf.group(*towers.initializers))
  steps = 0
  with tf.train.MonitoredTrainingSession(
      config=smart_stage_sessions.smart_stage_config(), scaffold=scaffold, hooks=[tf.make_prefetch_hook()]) as sess:
    while not sess.should_stop():
      towers.check(lambda: sess.run([towers.numbers, towers.losses, towers.train]), towers.count, train=True)
      steps += 1
      if steps == towers.elements // towers.count:
        break
  assert towers.read == towers.elements - 1


def _do_something(towers: _Towers, sess: tf.Session, choice: random.Random) -> bool:
  kind = choice.choice(["step", "step", "step", "tower", "some", "all"])
  if kind == "step":
    return towers.step(sess)
  if kind == "tower":
    return towers.run(sess, [choice.randrange(towers.count)])
  if kind == "some":
    return towers.run(sess, choice.sample(range(towers.count), towers.count - 1))
  return towers.run(sess, list(range(towers.count)))


@pytest.mark.parametrize("options", [{}, {"num_threads": 2}, {"capacity": 1}], ids=str)
def test_runs_of_some_towers_read_their_elements(towers, options):
  choice = random.Random(towers.count)
  with smart_stage_sessions.smart_stage_session(*towers.initializers, **{"capacity": _CAPACITY, **options}) as sess:
    for _ in range(10):
      towers.assert_staged(sess)
      while _do_something(towers, sess, choice):
        pass
      assert not towers.step(sess)
      assert sess.run(towers.weight) == towers.expected_weight
      towers.initialize(sess)
    # In the middle of the data.
    for _ in range(20):
      for _ in range(choice.randrange(6)):
        _do_something(towers, sess, choice)
      towers.initialize(sess)


def test_runs_of_some_towers_whose_elements_no_record_carries(towers):
  with smart_stage_sessions.smart_stage_session(*towers.initializers, carry_elements=False) as sess:

    def losses(fetches):
      values = sess.run(fetches)
      return [loss / (3 * towers.expected_weight) for loss in values], values

    towers.assert_staged(sess)
    for k in range(5):
      # The loss of one tower after those of all.
      assert towers.check(lambda: losses(towers.losses), towers.count)
      assert towers.check(lambda k=k: losses(towers.losses[k % 2:][:1]), 1)


def test_a_tower_gets_the_last_element_that_no_step_has_used():
  towers = _Towers(2, elements=7)
  with smart_stage_sessions.smart_stage_session(*towers.initializers) as sess:
    for _ in range(3):
      assert towers.step(sess)
    # The stage has read it, and has come to the end.
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].error)
    assert towers.run(sess, [0])
    assert not towers.run(sess, [1])


@pytest.mark.parametrize("after", ["step", "tower"])
def test_a_checkpoint_while_records_wait(towers, after, tmp_path):
  with smart_stage_sessions.smart_stage_session(*towers.initializers, capacity=_CAPACITY) as sess:
    for _ in range(3):
      assert towers.step(sess)
    if after == "tower":
      assert towers.run(sess, [1])
    else:
      test_util.wait_until(lambda: tf.staging.stats(sess)[0].waiting_puts == 1)
    path = towers.saver.save(sess, str(tmp_path / "model"))
    with tf.Graph().as_default():
      restored = _Towers(towers.count, towers.elements)
      restored.goes_on_as(towers)
      with tf.Session(config=smart_stage_sessions.smart_stage_config(capacity=_CAPACITY)) as other:
        other.run(restored.initializers[1])
        restored.saver.restore(other, path)
        with tf.make_prefetch_hook().running(other):
          restored.assert_staged(other)
          assert restored.run(other, [0])
          while restored.step(other):
            pass
    # The save changes nothing for the session that saved.
    while towers.step(sess):
      pass
    assert sess.run(towers.weight) == towers.expected_weight


def test_a_session_of_a_server(towers):
  server = tf.train.Server.create_local_server()
  choice = random.Random(5)
  with tf.Session(server.target, config=smart_stage_sessions.smart_stage_config(capacity=_CAPACITY)) as sess:
    towers.initialize(sess)
    with tf.make_prefetch_hook().running(sess):
      towers.assert_staged(sess)
      while _do_something(towers, sess, choice):
        pass
      assert sess.run(towers.weight) == towers.expected_weight


def test_callables(towers):
  with smart_stage_sessions.smart_stage_session(*towers.initializers) as sess:
    step = sess.make_callable([towers.numbers, towers.losses, towers.train])
    tower = sess.make_callable([towers.numbers[:1], towers.losses[:1]])
    for _ in range(5):
      assert towers.check(step, towers.count, train=True)
      assert towers.check(tower, 1)


def test_partial_runs(towers):
  with smart_stage_sessions.smart_stage_session(*towers.initializers) as sess:
    for _ in range(3):
      # The setup says what the run needs, so its parts have one record.
      handle = sess.partial_run_setup([*towers.numbers, *towers.losses])

      def parts(handle=handle):
        first = sess.partial_run(handle, [towers.numbers[0], towers.losses[0]])
        numbers, losses = sess.partial_run(handle, [towers.numbers[1:], towers.losses[1:]])
        return [first[0], *numbers], [first[1], *losses]

      assert towers.check(parts, towers.count)
      handle = sess.partial_run_setup([towers.numbers[1], towers.losses[1]])
      number, loss = sess.partial_run(handle, [towers.numbers[1], towers.losses[1]])
      assert towers.check(lambda number=number, loss=loss: ([number], [loss]), 1)


def test_a_run_that_feeds_some_towers_reads_the_elements_of_the_others(towers):
  with smart_stage_sessions.smart_stage_session(*towers.initializers) as sess:
    for _ in range(3):
      assert towers.step(sess)
      fed = {number: 1000 + k for k, number in enumerate(towers.numbers[1:])}

      def run(fed=fed):
        numbers, losses = sess.run([towers.numbers, towers.losses], fed)
        assert list(numbers[1:]) == list(fed.values())
        assert losses[1:] == [towers.expected_weight * 3 * number for number in fed.values()]
        return numbers[:1], losses[:1]

      assert towers.check(run, 1)


def _with_a_branch(number: tf.Tensor) -> tf.Tensor:
  return tf.cond(number % 2 < 1, lambda: _hashed(number), lambda: _hashed(number - 1) + 3)


def _with_a_loop(number: tf.Tensor) -> tf.Tensor:
  return tf.while_loop(lambda i, _: i < 3, lambda i, total: (i + 1, total + _hashed(number) / 3),
                       [0, tf.zeros([], tf.float64)])[1]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tower", [_with_a_branch, _with_a_loop])
def test_towers_with_control_flow(tower, version):
  with control_flow.version(version):
    towers = _Towers(2, elements=40, tower=tower)
  with smart_stage_sessions.smart_stage_session(*towers.initializers) as sess:
    towers.assert_staged(sess)
    for k in range(5):
      assert towers.step(sess)
      assert towers.run(sess, [k % 2])


def test_a_tower_that_draws_and_calls_python():
  seen = []

  def see(number):
    seen.append(int(number))
    return np.int64(number)

  def tower(number):
    number = tf.reshape(tf.py_func(see, [number], tf.int64), [])
    return _hashed(number) + tf.random.uniform([], minval=0, maxval=1, dtype=tf.float64)

  model = _Towers(2, elements=40, tower=tower)
  with smart_stage_sessions.smart_stage_session(*model.initializers, capacity=_CAPACITY) as sess:
    for i in range(10):
      fetched = sess.run([model.numbers, model.train])[0]
      assert sorted(fetched) == [3 * i, 3 * i + 1]
      # The step draws and calls for this run.
      number, loss = sess.run([model.numbers[1], model.losses[1]])
      assert number == 3 * i + 2
      assert loss / sess.run(model.weight) - 3 * number == pytest.approx(0.5, abs=0.51)
  assert set(range(30)) <= set(seen)


def test_towers_that_only_predict_stay_in_the_step():
  with tf.Graph().as_default():
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(40))
    weight = tf.get_variable("weight", initializer=tf.ones([], tf.float64), use_resource=True)
    predictions = [_hashed(iterator.get_next()) * weight for _ in range(2)]
    with smart_stage_sessions.smart_stage_session() as sess:
      assert "IteratorGetNext" in smart_stage_sessions.staged_ops(sess, predictions)
      assert [sess.run(predictions[i % 2]) for i in range(5)] == [3 * n for n in range(2, 7)]


def test_towers_with_embeddings_that_run_ahead_stay_in_the_step():
  towers = _Towers(2, elements=40)
  table = tf.get_variable("table", [50, 1], tf.float64)
  rows = [tf.nn.embedding_lookup(table, number) for number in towers.numbers]
  with tf.Session(config=smart_stage_sessions.async_embedding_config()) as sess:
    sess.run([tf.global_variables_initializer(), *towers.initializers])
    with tf.make_prefetch_hook().running(sess):
      for k in range(5):
        assert towers.step(sess)
        assert towers.run(sess, [k % 2])
        number, _ = sess.run([towers.numbers[0], rows[0]])
        assert number == towers.read
        towers.read += 1


def test_explain_says_that_the_towers_run_ahead():
  towers = _Towers(2, elements=40)
  report = tf.staging.explain(config=smart_stage_sessions.smart_stage_config())
  assert len(report.stages) == 1
  assert {number.op.name for number in towers.numbers} <= set(report.stages[0].sources)
