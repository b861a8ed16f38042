# SPDX-License-Identifier: Apache-2.0
"""`tf.stream` and `Graph.stream` record the number of a GPU stream in the ops that are created in them."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from tensorflow_staging.python.stages import stage_graph


def _number(tensor) -> int | None:
  attr = tensor.op.node_def.attr
  return attr["_stream_id"].i if "_stream_id" in attr else None


def _streams(count: int) -> tf.ConfigProto:
  config = tf.ConfigProto()
  rewrite_options = config.graph_options.rewrite_options
  rewrite_options.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
  rewrite_options.multi_stream_opts.multi_stream_num = count
  # The number of streams that a GPU gets is the same in the whole process.
  config.device_count["GPU"] = 0
  return config


def test_the_signature_is_that_of_the_reference():
  assert str(inspect.signature(tf.stream)).startswith("(stream_idx: int = 0)")
  assert str(inspect.signature(tf.Graph.stream)) == "(self, stream_idx=0)"


def test_the_innermost_scope_applies(graph):
  before = tf.constant(0)
  with tf.stream():
    a = tf.constant(1)
    with tf.stream(np.int64(2)):
      b = tf.constant(2)
      with graph.stream(1):
        c = tf.constant(3)
      d = tf.constant(4)
    e = tf.constant(5)
  after = tf.constant(6)
  assert [_number(tensor) for tensor in (before, a, b, c, d, e, after)] == [None, 0, 2, 1, 2, 0, None]


def test_a_scope_ends_with_an_exception(graph):
  with contextlib.suppress(KeyError):
    with tf.stream(1):
      raise KeyError
  assert _number(tf.constant(0)) is None


def test_scopes_that_overlap_are_refused(graph):
  outer, inner = tf.stream(1), tf.stream(2)
  outer.__enter__()
  inner.__enter__()
  with pytest.raises(RuntimeError, match="reverse order"):
    outer.__exit__(None, None, None)


@pytest.mark.parametrize("value, error", [(-1, ValueError), (2**31, ValueError), ("1", TypeError), (True, TypeError)])
def test_another_value_is_refused_at_the_call(graph, value, error):
  for call in (tf.stream, graph.stream):
    with pytest.raises(error, match=rf"stream_idx must be an integer from 0 .* got {value!r}"):
      call(value)


def test_eager_mode_is_refused(run_forked, tmp_path):
  output = run_forked(
      """
      import tensorflow as tf
      try:
        tf.stream(1)
      except ValueError as e:
        print(e)
      """, tmp_path, api_version="2")
  assert "tf.stream chooses a stream for the ops of a graph" in output


def test_a_scope_in_a_function_reaches_its_ops(graph):
  @tf.function
  def f():
    with tf.stream(1):
      return tf.constant(1) + 1

  numbers = [node.attr["_stream_id"].i for node in f.get_concrete_function().graph.as_graph_def().node
             if "_stream_id" in node.attr]
  assert numbers and set(numbers) == {1}


def test_colocation_names_the_op_whose_stream_applies(graph):
  with tf.stream(1):
    a = tf.constant(1)
  with tf.colocate_with(a):
    b = tf.constant(2)
  assert _number(b) is None
  assert b.op.colocation_groups() == [b"loc:@" + a.op.name.encode()]


def test_a_scope_does_not_choose_the_stream_of_a_region(graph):
  with tf.stream(2):
    staged = tf.staged(tf.constant(1), stage_subgraph_stream_id=1)
    tf.staged(tf.constant(1), name="other")
  assert _number(staged) == 2
  assert graph.get_operation_by_name("prefetch/TensorBufferPut").get_attr("_stream_id") == 1
  assert graph.get_operation_by_name("other/TensorBufferPut").get_attr("_stream_id") == 0
  assert len(graph.get_collection(stage_graph.RUNNERS_COLLECTION)) == 2


def test_without_a_gpu_everything_runs_where_it_did(graph):
  with tf.stream(1):
    a = tf.Variable(2.) * 3.
  with tf.Session(config=_streams(2)) as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(a) == 6.


def test_a_number_that_the_session_lacks_is_an_error(graph):
  with tf.stream(2):
    a = tf.constant(1, name="a")
  with tf.Session(config=_streams(2)) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
        r"Node 'a' is in tf.stream\(2\), but the session has 2 GPU stream\(s\): the number must be from 0 to 1\."
        " Choose such a stream, or raise .*multi_stream_num")):
      sess.run(a)
  with tf.Session() as sess:
    assert sess.run(a) == 1


def test_a_stage_on_a_stream_that_the_session_lacks_is_an_error(graph):
  staged = tf.staged(tf.constant(1), stage_subgraph_stream_id=3)
  with tf.Session(config=_streams(2)) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
        "The stage of node 'prefetch/TensorBufferPut' has stage_subgraph_stream_id 3, but")):
      sess.run(staged)


def test_a_stage_runs_without_a_gpu(graph):
  dataset = tf.data.Dataset.range(5)
  staged = tf.staged(tf.data.make_one_shot_iterator(dataset).get_next() * 2, stage_subgraph_stream_id=1)
  config = _streams(2)
  config.graph_options.optimizer_options.stage_multi_stream = True
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()], config=config) as sess:
    assert [sess.run(staged) for _ in range(5)] == [0, 2, 4, 6, 8]


def test_the_linear_regression_of_two_streams_trains(graph):
  tf.set_random_seed(1)
  x = np.linspace(-1, 1, 17, dtype=np.float32)[:, None]
  y = np.cos(3 * x)
  z = 2 * x - 0.5 * y + 0.25
  with tf.stream(0):
    features_x = tf.placeholder(tf.float32, [None, 1])
    weight_x = tf.Variable(tf.random_normal([1, 1]))
    bias = tf.Variable(tf.zeros([1]))
    result_x = tf.matmul(features_x, weight_x) + bias
  with tf.stream(1):
    features_y = tf.placeholder(tf.float32, [None, 1])
    weight_y = tf.Variable(tf.random_normal([1, 1]))
    result_y = tf.matmul(features_y, weight_y)
  target = tf.placeholder(tf.float32, [None, 1])
  loss = tf.reduce_mean(tf.square(result_x + result_y - target))
  train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
  feeds = {features_x: x, features_y: y, target: z}
  with tf.Session(config=_streams(2)) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(300):
      sess.run(train, feeds)
    assert sess.run(loss, feeds) < 1e-4
    np.testing.assert_allclose(
        [sess.run(v).item() for v in (weight_x, weight_y, bias)], [2, -0.5, 0.25], atol=0.05)
