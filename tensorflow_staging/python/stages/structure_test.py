# SPDX-License-Identifier: Apache-2.0
"""Taken features have the structure, types and static shapes of the staged ones."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_runs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_Point = collections.namedtuple("_Point", ["x", "y"])


def _run(fetches):
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    return sess.run(fetches)


def test_a_single_tensor():
  taken = tf.staged(tf.constant([1, 2, 3]))
  assert isinstance(taken, tf.Tensor)
  assert taken.dtype == tf.int32
  assert taken.shape.as_list() == [3]
  np.testing.assert_array_equal(_run(taken), [1, 2, 3])


def test_a_list_is_new_and_mutable():
  features = [tf.constant(1), tf.constant("one")]
  taken = tf.staged(features)
  assert type(taken) is list
  assert taken is not features
  taken[0] = taken[0] + 1
  taken.append(tf.constant(3))
  assert _run(taken) == [2, b"one", 3]
  assert len(features) == 2


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_a_dict_is_new_mutable_and_keeps_type_and_order(kind):
  features = kind([("zebra", tf.constant(1.5)), ("ant", tf.constant([2, 3]))])
  taken = tf.staged(features)
  assert type(taken) is kind
  assert taken is not features
  assert list(taken) == ["zebra", "ant"]
  taken["zebra"] = taken["zebra"] * 2
  assert _run(taken["zebra"]) == 3.0
  np.testing.assert_array_equal(_run(taken["ant"]), [2, 3])


def test_tuples_named_tuples_and_nesting():
  features = (_Point(tf.constant(1), [tf.constant(2)]), {"deep": (tf.constant(3),)})
  taken = tf.staged(features)
  assert type(taken) is tuple
  assert type(taken[0]) is _Point
  assert _run(taken) == (_Point(1, [2]), {"deep": (3,)})


def test_none_and_empty_containers_keep_their_place():
  taken = tf.staged({"a": None, "b": [tf.constant(1), None], "c": (), "d": {}})
  assert taken["a"] is None
  assert taken["b"][1] is None
  assert taken["c"] == ()
  assert taken["d"] == {}
  assert _run(taken["b"][0]) == 1


def test_a_sparse_tensor_keeps_its_static_shape():
  source = tf.sparse.from_dense([[0, 7, 0], [8, 0, 9]])
  taken = tf.staged({"ids": source})["ids"]
  assert isinstance(taken, tf.SparseTensor)
  assert taken.shape.as_list() == [2, 3]
  value = _run(taken)
  np.testing.assert_array_equal(value.indices, [[0, 1], [1, 0], [1, 2]])
  np.testing.assert_array_equal(value.values, [7, 8, 9])
  np.testing.assert_array_equal(value.dense_shape, [2, 3])


def test_a_ragged_tensor_keeps_its_rows():
  source = tf.ragged.constant([[[1], []], [[2, 3]]])
  taken = tf.staged(source)
  assert isinstance(taken, tf.RaggedTensor)
  assert taken.shape.as_list() == source.shape.as_list()
  assert _run(taken).to_list() == [[[1], []], [[2, 3]]]


@pytest.mark.parametrize(
    "shape", [None, [], [None], [None, 3], [2, 0]], ids=["unknown", "scalar", "any", "rows", "empty"])
def test_static_shapes_are_unchanged(shape):
  source = tf.placeholder_with_default(tf.zeros([2, 0] if shape == [2, 0] else []), None)
  source.set_shape(shape)
  taken = tf.staged([source])[0]
  assert taken.shape.rank == source.shape.rank
  if source.shape.rank is not None:
    assert taken.shape.as_list() == source.shape.as_list()


@pytest.mark.parametrize(
    "value",
    [True, np.int8(-3), np.uint64(2**63), np.float64(0.5), 1 + 2j, "text", b"\x00\xff"],
    ids=lambda value: type(value).__name__)
def test_a_record_carries_every_type(value):
  source = tf.constant(value)
  taken = tf.staged(source)
  assert taken.dtype == source.dtype
  expected = value.encode() if isinstance(value, str) else value
  assert _run(taken) == expected


@pytest.mark.parametrize(
    "value,dtype",
    [(3, tf.int32), (2**40, tf.int64), (0.5, tf.float32), (True, tf.bool), (1 + 2j, tf.complex128),
     ("text", tf.string), (b"\x00\xff", tf.string), (np.int64(3), tf.int64), (np.float16(0.5), tf.float16),
     (np.arange(6.0).reshape([2, 3]), tf.float64), (np.zeros([0, 2], np.int8), tf.int8),
     (np.array(["a", "b"]), tf.string), (np.array([b"a", b"b"], object), tf.string)],
    ids=lambda value: repr(value).replace("\n", ""))
def test_a_python_or_numpy_value_becomes_a_tensor(value, dtype):
  taken = tf.staged({"tensor": tf.constant(7), "value": [value]})
  result = taken["value"][0]
  assert isinstance(result, tf.Tensor)
  assert result.dtype == dtype
  assert result.shape.as_list() == list(np.shape(value))
  expected = np.vectorize(tf.compat.as_bytes)(value) if dtype == tf.string else value
  values = _run(taken)
  assert values["tensor"] == 7
  np.testing.assert_array_equal(values["value"][0], expected)


@pytest.mark.parametrize("smart_stage", [False, True])
def test_each_record_carries_the_value(smart_stage):
  record = tf.staged((test_util.dataset_record(3), 10, "text"), capacity=2)
  config = smart_stage_sessions.smart_stage_config() if smart_stage else None
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    taken, types = smart_stage_runs.run_and_look(sess, (record[0] + 1, record[1], record[2]))
    assert [taken, *test_util.drain(sess, record)] == [(1, 10, b"text"), (1, 10, b"text"), (2, 10, b"text")]
  assert "TensorBufferTake" in types


def test_features_may_be_values_alone():
  assert _run(tf.staged(3)) == 3


def test_the_constants_belong_to_the_stage_and_not_to_the_step(graph):
  with tf.control_dependencies([tf.no_op(name="of_the_step")]), tf.device("/device:GPU:0"):
    tf.staged([1, "text"], name="ahead")
  put = graph.get_operation_by_name("ahead/TensorBufferPut")
  constants = [tensor.op for tensor in put.inputs]
  assert [op.name for op in constants] == ["ahead/constant", "ahead/constant_1"]
  # A string has no kernel on a GPU.
  assert {op.device for op in constants} == {"/device:CPU:0"}
  assert not any(op.control_inputs for op in constants)


def test_a_variable_is_staged_by_its_value():
  variable = tf.get_variable("v", initializer=5)
  taken = tf.staged(tf.convert_to_tensor(variable))
  with tf.Session() as sess:
    sess.run(variable.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(taken) == 5


def test_gradients_end_at_the_stage():
  weight = tf.get_variable("w", initializer=3.0, use_resource=True)
  taken = tf.staged(tf.constant(2.0))
  assert tf.gradients(taken, [weight], unconnected_gradients="none") == [None]
  gradient, = tf.gradients(taken * weight, [weight])
  with tf.Session() as sess:
    sess.run(weight.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(gradient) == 2.0


def test_keys_that_cannot_be_sorted_are_named():
  with pytest.raises(TypeError, match="features must be nested in .* dicts whose keys can be sorted, got {1: "):
    tf.staged({1: tf.constant(1), "b": tf.constant(2)})
