# SPDX-License-Identifier: Apache-2.0
"""Stages of tf.compat.v1 sessions beside an official TensorFlow: what works, and what is refused with an error."""

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_staging

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _graph():
  with tf.Graph().as_default():
    yield


def _element(count, name=None):
  return v1.data.make_one_shot_iterator(v1.data.Dataset.range(count)).get_next(name=name)


def _drain(sess, fetches):
  values = []
  with pytest.raises(tf.errors.OutOfRangeError):
    while True:
      values.append(sess.run(fetches))
  return values


@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_step_gets_each_record_once_with_what_is_beside_it(num_threads):
  number = _element(50)
  staged = tensorflow_staging.staged(number * 10, capacity=3, num_threads=num_threads)
  both = tf.stack([staged, number])
  seen = []
  with v1.train.MonitoredTrainingSession(hooks=[tensorflow_staging.make_prefetch_hook()]) as sess:
    while not sess.should_stop():
      seen.append(sess.run(both).tolist())
  assert seen == [[10 * n, n] for n in range(50)]


def test_an_iterator_that_is_initialised_again():
  iterator = v1.data.make_initializable_iterator(v1.data.Dataset.range(9))
  staged = tensorflow_staging.staged(iterator.get_next() * 2, capacity=4)
  with v1.Session() as sess:
    sess.run(iterator.initializer)
    with tensorflow_staging.make_prefetch_hook().running(sess):
      assert [sess.run(staged) for _ in range(3)] == [0, 2, 4]
      sess.run(iterator.initializer)
      assert _drain(sess, staged) == [2 * n for n in range(9)]


def _losses(config):
  """Trains a model on hashed texts; returns its losses, and what the stages have counted."""
  with tf.Graph().as_default():
    v1.set_random_seed(1)
    texts = v1.data.Dataset.range(40).map(tf.strings.as_string).batch(4)
    iterator = v1.data.make_initializable_iterator(texts)
    buckets = tf.strings.to_hash_bucket_fast(iterator.get_next(), 16)
    rows = tf.nn.embedding_lookup(v1.get_variable("table", [16, 4]), buckets)
    loss = tf.reduce_sum(rows * rows)
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with v1.Session(config=config) as sess:
      sess.run([v1.global_variables_initializer(), iterator.initializer])
      with tensorflow_staging.make_prefetch_hook().running(sess):
        losses = [loss for loss, _ in _drain(sess, [loss, train])]
        return losses, tensorflow_staging.stats(sess)


def test_smart_stage_finds_a_stage_and_losses_are_equal():
  config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
  expected, none = _losses(config)
  options = tensorflow_staging.SmartStageOptions(capacity=2)
  losses, stages = _losses(tensorflow_staging.smart_stage_config(config, options))
  assert losses == expected and len(losses) == 10
  assert not none and [(stage.name, stage.taken) for stage in stages] == [("prefetch", 10)]


def test_a_checkpoint_has_what_was_read_ahead(tmp_path):
  def program(steps, restore):
    with tf.Graph().as_default():
      iterator = v1.data.make_initializable_iterator(v1.data.Dataset.range(30))
      staged = tensorflow_staging.staged(iterator.get_next(), capacity=4)
      saver = v1.train.Saver([v1.get_variable("weight", [])])
      saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
      positions = v1.train.Saver({"iterator": saveable})
      del saver
      with v1.Session() as sess:
        sess.run(iterator.initializer)
        if restore:
          positions.restore(sess, str(tmp_path / "position"))
        with tensorflow_staging.make_prefetch_hook().running(sess):
          seen = [int(sess.run(staged)) for _ in range(steps)]
          positions.save(sess, str(tmp_path / "position"))
        return seen

  assert program(7, restore=False) == list(range(7))
  assert program(5, restore=True) == list(range(7, 12))


def test_discard_makes_records_again():
  scale = v1.get_variable("scale", initializer=np.int64(1))
  staged = tensorflow_staging.staged(_element(100) * scale, capacity=4)
  change = scale.assign(2)
  with v1.Session() as sess:
    sess.run(scale.initializer)
    with tensorflow_staging.make_prefetch_hook().running(sess):
      assert sess.run(staged) == 0
      sess.run(change)
      tensorflow_staging.discard(sess)
      assert sess.run(staged) == 2


def test_an_error_of_the_region_reaches_the_step_after_the_records_before_it():
  number = _element(6)
  with tf.control_dependencies([v1.debugging.assert_less(number, np.int64(3), message="too large")]):
    staged = tensorflow_staging.staged(tf.identity(number), capacity=2)
  with v1.Session() as sess, tensorflow_staging.make_prefetch_hook().running(sess):
    assert [sess.run(staged) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
      sess.run(staged)


def test_a_program_may_close_the_session_under_its_stages():
  from tensorflow_staging.python.pywrap import _pywrap_staging

  staged = tensorflow_staging.staged(_element(2**40), capacity=2)
  sess = v1.Session()
  tensorflow_staging.make_prefetch_hook().after_create_session(sess)
  assert sess.run(staged) == 0
  sess.close()
  assert _pywrap_staging.num_stage_threads() == 0


def test_a_graph_without_its_stage():
  tf.identity(tensorflow_staging.staged(_element(9) * 10), name="result")
  graph_def = tensorflow_staging.unstaged(v1.get_default_graph(), ["result"])
  with tf.Graph().as_default():
    result, = tf.import_graph_def(graph_def, return_elements=["result:0"])
    with v1.Session() as sess:
      assert _drain(sess, result) == [10 * n for n in range(9)]
  assert not [node.op for node in graph_def.node if node.op.startswith("TensorBuffer")]


# What only a patch could do is an error.


def test_a_run_that_feeds_what_a_stage_computes_ahead():
  number = _element(9, name="number")
  doubled = tf.identity(number * 2, name="doubled")
  result = tensorflow_staging.staged(doubled, capacity=2) + number
  with v1.Session() as sess, tensorflow_staging.make_prefetch_hook().running(sess):
    assert sess.run(result) == 0
    with pytest.raises(tf.errors.FailedPreconditionError, match="feeds 'number:0', which stage 'prefetch'"):
      sess.run(result, {"number:0": 7})
    with pytest.raises(tf.errors.FailedPreconditionError, match="feeds 'number:0', which stage 'prefetch'"):
      sess.make_callable(result, [number])(7)
    with pytest.raises(tf.errors.FailedPreconditionError, match="feeds 'doubled:0', which stage 'prefetch'"):
      sess.run(result, {doubled: 7})
    assert sess.run(result) == 3


def test_a_run_that_feeds_what_the_step_itself_does_not_use():
  number = _element(9, name="number")
  tripled = number * 3
  weight = v1.get_variable("weight", initializer=np.int64(0))
  train = weight.assign_add(tripled)
  with v1.Session(config=tensorflow_staging.smart_stage_config()) as sess:
    sess.run(weight.initializer)
    with tensorflow_staging.make_prefetch_hook().running(sess):
      assert sess.run(train) == 0
      with pytest.raises(tf.errors.FailedPreconditionError, match="feeds 'number:0', which stage 'prefetch'"):
        sess.run(train, {number: 7})
      assert sess.run(train) == 3


def test_a_run_that_feeds_what_a_stage_yields():
  between = (_element(9) + 5) * 2
  first = tensorflow_staging.staged([between, between + 1], capacity=2)
  last = tensorflow_staging.staged(first[0] + 1)
  with v1.Session() as sess, tensorflow_staging.make_prefetch_hook().running(sess):
    assert sess.run(first[0] * 7, {first[0]: 100}) == 700
    with pytest.raises(tf.errors.FailedPreconditionError, match="The run needs 'mul', which a stage computes ahead"):
      sess.run([between, first[0]], {first[0]: 100})
    with pytest.raises(tf.errors.FailedPreconditionError, match="which stage 'prefetch_1' computes ahead"):
      sess.run(last, {first[0]: 100})


def test_a_region_on_two_devices():
  number = _element(9)
  with tf.device("/cpu:1"):
    tens = number * 10
  staged = tensorflow_staging.staged(tens)
  with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as sess:
    with tensorflow_staging.make_prefetch_hook().running(sess):
      with pytest.raises(tf.errors.FailedPreconditionError, match="a stage of a session runs on one device"):
        sess.run(staged)


def test_a_session_of_a_server():
  server = v1.train.Server.create_local_server()
  tensorflow_staging.staged(_element(9))
  with v1.Session(server.target) as sess:
    with pytest.raises(tf.errors.UnimplementedError, match="only local sessions have stages"):
      tensorflow_staging.make_prefetch_hook().after_create_session(sess)


def test_a_run_that_would_skip_elements_of_a_joined_iterator():
  first, second = _element(9, "first"), _element(9, "second")
  weight = v1.get_variable("weight", initializer=np.int64(0))
  train = weight.assign_add(first * 2 + second)
  with v1.Session(config=tensorflow_staging.smart_stage_config()) as sess:
    sess.run(weight.initializer)
    with tensorflow_staging.make_prefetch_hook().running(sess):
      assert sess.run([first, train]) == [0, 0]
      with pytest.raises(tf.errors.FailedPreconditionError, match="element of 'first', but not of 'second'"):
        sess.run(first)
      assert sess.run([first, second]) == [1, 1]


def test_an_interactive_session():
  staged = tensorflow_staging.staged(_element(9))
  sess = v1.InteractiveSession()
  try:
    with pytest.raises(tf.errors.FailedPreconditionError, match="use tf.compat.v1.Session"):
      sess.run(staged)
  finally:
    sess.close()


@pytest.mark.parametrize("argument", [{"use_stage_subgraph_thread_pool": True}, {"stage_subgraph_stream_id": 1}])
def test_thread_pools_and_streams(argument):
  with pytest.raises(ValueError, match=f"{next(iter(argument))} .* only in the fork"):
    tensorflow_staging.staged(_element(9), **argument)
  with pytest.raises(ValueError, match=f"{next(iter(argument))} .* only in the fork"):
    tensorflow_staging.SmartStageOptions(**argument)
