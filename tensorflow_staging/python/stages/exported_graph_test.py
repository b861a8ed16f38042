# SPDX-License-Identifier: Apache-2.0
"""A graph that was exported and imported trains with its stages, in any name scope."""

import re

import pytest
import tensorflow as tf

from tensorflow_staging.python.stages import stage_graph
from tensorflow_staging.python.testing import test_util

_RECORDS = 8
_SCOPES = pytest.mark.parametrize("scope", [None, "model"], ids=["as it was", "in a scope"])


def _training_graph() -> tf.compat.v1.MetaGraphDef:
  """Exports a graph that learns y = 2 x from a chain: a stage with a feed, then a join."""
  with tf.Graph().as_default():
    offset = tf.placeholder(tf.int64, [], name="offset")
    number = test_util.dataset_record(_RECORDS) + offset
    zero = tf.constant(0, tf.int64)
    number = tf.staged(number, feed_dict={offset: zero}, capacity=2, name="input")
    x = tf.prefetch_join([tf.cast(number, tf.float32)], name="floats")
    weight = tf.get_variable("weight", initializer=0.0)
    loss = tf.square(weight * x - 2 * x, name="loss")
    tf.group(tf.train.GradientDescentOptimizer(0.01).minimize(loss), name="train")
    tf.identity(x, name="x")
    return tf.train.export_meta_graph()


def _name(scope, name):
  return f"{scope}/{name}" if scope else name


@_SCOPES
def test_an_imported_graph_trains(scope):
  tf.train.import_meta_graph(_training_graph(), import_scope=scope)
  weight, = tf.global_variables()
  fetches = [_name(scope, "x:0"), weight, _name(scope, "train")]
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    steps = test_util.drain(sess, fetches)
  assert [x for x, _, _ in steps] == list(range(_RECORDS))
  assert 0 < steps[-1][1] <= 2


@_SCOPES
def test_a_graph_goes_through_a_file_and_through_a_second_export(tmp_path, scope):
  path = str(tmp_path / "graph.meta")
  with tf.Graph().as_default():
    tf.train.import_meta_graph(_training_graph(), import_scope=scope)
    tf.train.export_meta_graph(path)
  tf.train.import_meta_graph(path, import_scope="again")
  fetch = f"again/{_name(scope, 'x:0')}"
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, fetch) == list(range(_RECORDS))


def test_a_scope_that_is_exported_alone():
  with tf.Graph().as_default() as source:
    with tf.name_scope("model"):
      tf.staged(test_util.dataset_record(_RECORDS), name="input")
    tf.staged(test_util.dataset_record(1), name="other")
  definition = tf.train.export_meta_graph(graph=source, export_scope="model")
  tf.train.import_meta_graph(definition)
  assert len(tf.get_collection(stage_graph.RUNNERS_COLLECTION)) == 1
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    taken = test_util.drain(sess, "input/TensorBufferTake:0")
  assert taken == list(range(_RECORDS))


def test_a_stage_that_is_only_partly_in_the_exported_scope_has_no_runner_there(caplog):
  with tf.Graph().as_default() as source:
    offset = tf.placeholder(tf.int64, [], name="offset")
    value = tf.constant(1, tf.int64)
    with tf.name_scope("model"):
      tf.staged(offset + 1, feed_dict={offset: value}, name="input")
  with caplog.at_level("WARNING", logger="tensorflow"):
    definition = tf.train.export_meta_graph(graph=source, export_scope="model")
  assert not definition.collection_def[stage_graph.RUNNERS_COLLECTION].bytes_list.value
  assert "Stage 'model/input' is exported without its runner" in caplog.text


def test_two_imports_of_one_graph_have_a_buffer_each():
  definition = _training_graph()
  with tf.name_scope("outer"):
    tf.train.import_meta_graph(definition, import_scope="model")
  tf.train.import_meta_graph(definition, import_scope="model")
  tf.train.import_meta_graph(definition, import_scope="model")
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    for scope in ("model_1", "outer/model", "model"):
      assert test_util.drain(sess, f"{scope}/x:0") == list(range(_RECORDS))


def test_two_imports_without_a_scope_are_refused():
  with tf.Graph().as_default():
    tf.staged(tf.constant(1), name="input")
    definition = tf.train.export_meta_graph()
  tf.train.import_meta_graph(definition)
  message = re.escape("has a stage 'input' already") + ".*import_scope"
  with pytest.raises(ValueError, match=message):
    tf.train.import_meta_graph(definition)


@pytest.mark.parametrize("stage", [tf.staged, lambda record: tf.prefetch_join([record])], ids=["staged", "join"])
@pytest.mark.parametrize("scope", [None, "scope"])
def test_a_stage_that_is_added_to_an_imported_graph_has_a_buffer_of_its_own(stage, scope):
  with tf.Graph().as_default():
    stage(test_util.dataset_record(_RECORDS))
    definition = tf.train.export_meta_graph()
  tf.train.import_meta_graph(definition, import_scope=scope)
  imported = _name(scope, "prefetch/TensorBufferTake:0")
  with tf.name_scope(scope and f"{scope}/"):
    added = stage(test_util.dataset_record(_RECORDS) + 100)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, [imported, added]) == [[i, 100 + i] for i in range(_RECORDS)]


def test_a_graph_def_alone_brings_no_runners():
  # A GraphDef holds only nodes, so it also loses the queue runners of TensorFlow.
  tf.import_graph_def(_training_graph().graph_def, name="model")
  assert not tf.get_collection(stage_graph.RUNNERS_COLLECTION)
