# SPDX-License-Identifier: Apache-2.0
"""A name in the user's graph refers to the value that the step sees, whichever nodes are staged."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions


def _pair():
  numbers = tf.data.Dataset.range(100)
  return tf.data.make_one_shot_iterator(tf.data.Dataset.zip((numbers, numbers.map(lambda x: x + 1000)))).get_next()


def _in_step(tensor):
  return tensor + tf.get_variable("variable", initializer=np.int64(0))


def test_staged_tensors_are_fetched_with_the_step_that_uses_them():
  first, second = _pair()
  double = first * 2
  result = _in_step(double + second)
  with smart_stage_sessions.smart_stage_session(capacity=4) as sess:
    assert "IteratorGetNext" not in smart_stage_sessions.staged_ops(sess, result)
    for step in range(1, 20):
      assert sess.run([result]) == [3 * step + 1000]


@pytest.mark.parametrize("distributed,on_cpu", [(False, False), (False, True), (True, False)])
def test_every_tensor_of_a_record_is_fetched_with_the_step_that_uses_it(distributed, on_cpu):
  first, second = _pair()
  words = tf.strings.join(["a", tf.as_string(first)], separator=" ")
  sparse = tf.strings.split(tf.reshape(words, [1]), result_type="SparseTensor")
  unique, index = tf.unique(tf.stack([first, second, first]))
  result = _in_step(tf.reduce_sum(unique))
  target = tf.train.Server.create_local_server().target if distributed else ""
  config = smart_stage_sessions.smart_stage_config(capacity=3)
  config.graph_options.optimizer_options.stage_subgraph_on_cpu = on_cpu
  with tf.Session(target, config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      for step in range(3):
        values = sess.run([result, first, words, sparse.values, index, unique])
        total, number, word, split, places, numbers = values
        assert (total, number, word) == (2 * step + 1000, step, b"a %d" % step)
        assert split.tolist() == [b"a", b"%d" % step]
        assert (places.tolist(), numbers.tolist()) == ([0, 1, 0], [step, step + 1000])
      # A fetch beside the step takes the next record, as without SmartStage.
      assert sess.run(words) == b"a 3"
      assert sess.run([result, second]) == [1008, 1004]


def test_a_logging_hook_sees_the_tensors_of_its_step():
  first, second = _pair()
  words = tf.as_string(first)
  result = _in_step(first + second)
  logged = []
  hooks = [
      tf.make_prefetch_hook(),
      tf.train.LoggingTensorHook({"words": words, "second": second}, every_n_iter=1, formatter=logged.append),
  ]
  config = smart_stage_sessions.smart_stage_config(capacity=3)
  with tf.train.MonitoredTrainingSession(config=config, hooks=hooks) as sess:
    assert [sess.run(result) for _ in range(3)] == [1000, 1002, 1004]
  assert logged == [{"words": b"%d" % step, "second": 1000 + step} for step in range(3)]


@pytest.fixture
def control_flow_v2():
  with control_flow.version(2):
    yield


@pytest.mark.parametrize("manual", [False, True])
def test_a_tensor_behind_control_flow_is_fetched_with_the_step_that_uses_it(control_flow_v2, manual):
  """TensorFlow replaces a functional loop or conditional by nodes of other names."""
  first, second = _pair()
  if manual:
    first, second = tf.staged((first, second))
  doubled = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), [0, first])[1]
  chosen = tf.cond(second > 0, lambda: doubled + 1, lambda: doubled - 1)
  more = tf.add(chosen, 1, name="more")
  result = _in_step(more * 10)
  with smart_stage_sessions.smart_stage_session(capacity=4) as sess:
    assert not {"While", "StatelessWhile", "Enter"} & smart_stage_sessions.staged_ops(sess, result)
    for step in range(1, 6):
      assert sess.run([result, doubled, chosen, more, first]) == [
          80 * step + 20, 8 * step, 8 * step + 1, 8 * step + 2, step]
    # A run that feeds a tensor that the loop uses computes the loop in the step.
    assert sess.run([result, doubled], {first: 100, second: 1}) == [8020, 800]
    assert sess.run([result, doubled], {first: 200}) == [16020, 1600]
    assert sess.run([result, first]) == [80 * 7 + 20, 7]


def test_a_refused_fetch_takes_no_record():
  first, second = _pair()
  drawn = first + tf.random.uniform([], maxval=1, dtype=tf.int64)
  result = _in_step(drawn * 2)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([result, second]) == [0, 1000]
    for _ in range(3):
      with pytest.raises(tf.errors.FailedPreconditionError, match="mark_target_node"):
        sess.run([result, drawn])
    assert sess.run([result, second]) == [2, 1001]


def test_a_run_of_one_of_the_sources_that_a_record_joins_reads_it_alone():
  first = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next(name="first")
  second = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next(name="second")
  result = _in_step(first * 2 + second)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([first, result]) == [0, 0]
    assert sess.run(first) == 1
    assert sess.run([first, second]) == [2, 1]
    assert sess.run([result, second]) == [8, 2]
    assert [sess.run(second), sess.run(second)] == [3, 4]
    assert sess.run([first, second, result]) == [4, 5, 13]


def test_what_only_a_summary_needs_runs_when_the_summary_is_fetched():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
  seen = []

  def see(value):
    seen.append(int(value))
    return np.float32(value)

  summary = tf.summary.scalar("seen", tf.py_func(see, [record * 3], tf.float32))
  weight = tf.get_variable("weight", initializer=np.int64(0))
  train = weight.assign_add(record * 2)
  with smart_stage_sessions.smart_stage_session(capacity=4) as sess:
    assert "Mul" not in smart_stage_sessions.staged_ops(sess, train)  # SmartStage staged it.
    for _ in range(9):
      sess.run(train)
    assert not seen
    sess.run([train, summary])
    assert seen == [30]


def test_a_fetched_loss_computes_nothing_of_the_region_again():
  line = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors("2,1").repeat()).get_next()
  number, label = tf.decode_csv([line], [[0.0], [0.0]])
  weight = tf.get_variable("weight", initializer=1.0)
  # Training needs of the label what the gradient multiplies, which runs ahead.
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=number * weight))
  train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
  with smart_stage_sessions.smart_stage_session(capacity=4) as sess:
    assert "DecodeCSV" not in smart_stage_sessions.staged_ops(sess, [train, loss])


def test_a_fetched_draw_that_only_a_summary_uses_is_that_of_the_record():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
  noise = record * 0 + tf.random.uniform([], maxval=1000, dtype=tf.int64, seed=1)
  image = tf.cast(noise * 2, tf.float32)
  summary = tf.summary.scalar("noise", image)
  weight = tf.get_variable("weight", initializer=np.int64(0))
  with tf.control_dependencies([weight.assign(noise)]):
    read = weight.read_value()
  with smart_stage_sessions.smart_stage_session() as sess:
    for _ in range(5):
      value, written = sess.run([image, read])
      assert value == 2 * written
    proto = tf.Summary.FromString(sess.run([summary, read])[0])
    assert proto.value[0].tag == "noise"


def test_running_a_staged_node_takes_a_record():
  first, _ = _pair()
  result = _in_step(first * 2)
  with smart_stage_sessions.smart_stage_session() as sess:
    sess.run(first.op)
    assert sess.run(result) == 2


@pytest.mark.parametrize("smart_stage", [True, False])
def test_stacking_a_tensor_of_a_record_on_itself(smart_stage):
  # Grappler confuses the outputs of a node here; see core/graph/rewrite/pack_guard.h.
  numbers = tf.data.Dataset.range(100).batch(2, drop_remainder=True)
  first, second = tf.staged(
      tf.data.make_one_shot_iterator(tf.data.Dataset.zip((numbers, numbers.map(lambda x: x + 1000)))).get_next())
  stacked = tf.stack([tf.identity(second), second])
  tf.train.mark_target_node([stacked])
  result = stacked + 1
  config = smart_stage_sessions.smart_stage_config() if smart_stage else tf.ConfigProto()
  config.graph_options.rewrite_options.min_graph_nodes = -1
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    for step in range(0, 6, 2):
      values = sess.run([result, first])
      assert values[0].tolist() == [[1001 + step, 1002 + step]] * 2
      assert values[1].tolist() == [step, step + 1]


def test_both_paths_to_a_shared_random_number_see_the_same_draw():
  first, _ = _pair()
  noise = tf.random.uniform([], maxval=1000, dtype=tf.int64, seed=1)
  staged = first * 0 + noise
  result = _in_step(staged - noise)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(result) for _ in range(20)] == [0] * 20
