# SPDX-License-Identifier: Apache-2.0
"""`tf.staged` refuses a bad argument at the call, names it, and leaves the graph unchanged."""

import re

import numpy as np
import pytest
import tensorflow as tf

_NUMBER_CASES = [
    ("capacity", 0, ValueError, "capacity must be an integer from 1 to 2147483647, or tf.data.AUTOTUNE, got 0"),
    ("capacity", -2, ValueError, "capacity must be an integer from 1 to .* got -2"),
    ("device_capacity_bytes", -1, ValueError,
     "device_capacity_bytes must be an integer from 0 to 9223372036854775807, got -1"),
    ("capacity_bytes", -1, ValueError, "capacity_bytes must be an integer from 0 to 9223372036854775807, got -1"),
    ("capacity", 2**31, ValueError, "capacity must be an integer from 1 to .* got 2147483648"),
    ("capacity", 1.5, TypeError, "capacity must be an integer .* got 1.5 of type float"),
    ("capacity", True, TypeError, "capacity must be an integer .* got True of type bool"),
    ("capacity", None, TypeError, "capacity must be an integer .* got None of type NoneType"),
    ("num_threads", 0, ValueError, "num_threads must be an integer from 1 .* got 0"),
    ("num_threads", 4097, ValueError, "num_threads must be an integer from 1 to 4096, .* got 4097"),
    ("num_threads", "4", TypeError, "num_threads must be an integer .* got '4' of type str"),
    ("num_clients", -1, ValueError, "num_clients must be an integer from 1 .* got -1"),
    ("num_client", 0, ValueError, "num_client must be an integer from 1 .* got 0"),
    ("timeout_millis", -1, ValueError, "timeout_millis must be an integer from 0 .* got -1"),
    ("timeout_millis", 0.5, TypeError, "timeout_millis must be an integer .* got 0.5"),
    ("use_stage_subgraph_thread_pool", 1, TypeError,
     "use_stage_subgraph_thread_pool must be True or False, got 1 of type int"),
    ("stage_subgraph_thread_pool_id", -1, ValueError,
     "stage_subgraph_thread_pool_id must be an integer from 0 .* got -1"),
    ("stage_subgraph_thread_pool_id", 1, ValueError,
     "stage_subgraph_thread_pool_id must be 0 unless use_stage_subgraph_thread_pool=True, got 1"),
    ("stage_subgraph_stream_id", -2, ValueError,
     "stage_subgraph_stream_id must be an integer from 0 .* got -2"),
    ("closed_exception_types", tf.errors.OUT_OF_RANGE, TypeError,
     "closed_exception_types must be a tuple of codes .* got 11 of type int"),
    ("closed_exception_types", (ValueError,), ValueError,
     r"closed_exception_types\[0\] must be a class of tf.errors .* got ValueError"),
    ("ignored_exception_types", (tf.errors.ABORTED, "late"), TypeError,
     r"ignored_exception_types\[1\] must be a code .* got 'late' of type str"),
    ("ignored_exception_types", (99,), ValueError,
     r"ignored_exception_types\[0\] must be an error code from 1 to 16, got 99"),
    ("name", 7, TypeError, "name must be None or a string, got 7 of type int"),
    ("name", "input/", ValueError, "name must not end with '/', got 'input/'"),
    ("name", "?", ValueError, "is not a valid root scope name"),
    ("feed_dict", [1], TypeError, r"feed_dict must be a dict .* got \[1\] of type list"),
]


@pytest.mark.parametrize(
    "argument,value,error,message", _NUMBER_CASES,
    ids=[f"{argument}={value!r}" for argument, value, _, _ in _NUMBER_CASES])
def test_option(graph, argument, value, error, message):
  features = tf.constant(1)
  nodes = len(graph.get_operations())
  with pytest.raises(error, match=message):
    tf.staged(features, **{argument: value})
  assert len(graph.get_operations()) == nodes


def test_two_spellings_of_num_clients_must_agree():
  with pytest.raises(ValueError, match="give one of them, got num_clients=3 and num_client=2"):
    tf.staged(tf.constant(1), num_clients=3, num_client=2)
  tf.staged(tf.constant(1), num_clients=2, num_client=2)


def test_numpy_integers_are_integers():
  tf.staged(tf.constant(1), capacity=np.int64(2), num_threads=np.int32(1))


@pytest.mark.parametrize("features", [[], {}, None, [None, {"a": None}]], ids=repr)
def test_features_without_a_tensor_need_no_stage(graph, features):
  assert tf.staged(features) == features
  assert tf.prefetch_join([features, features]) == features
  assert not graph.get_operations()


def test_arguments_are_checked_without_a_tensor():
  with pytest.raises(ValueError, match="capacity must be .* got 0"):
    tf.staged({}, capacity=0)


@pytest.mark.parametrize("leaf", [{1, 2}, object(), len], ids=type)
def test_features_with_a_leaf_that_is_no_tensor(leaf):
  message = (r"features\['a'\]\[1\] must be a tf.Tensor, .*, a NumPy array, or a Python number or string, got .*"
             " of type " + type(leaf).__name__)
  with pytest.raises(TypeError, match=message):
    tf.staged({"a": [tf.constant(1), leaf]})


@pytest.mark.parametrize(
    "value,error",
    [(2**70, TypeError), (np.array([None]), TypeError), (np.datetime64("2020-01-01"), TypeError),
     ("\ud800", ValueError)],
    ids=repr)
def test_features_with_a_value_that_is_no_constant(graph, value, error):
  message = "features['a'][1] must be a value that tf.constant accepts, got " + repr(value)
  with pytest.raises(error, match=re.escape(message)):
    tf.staged({"a": [3, value]})
  assert not graph.get_operations()


def test_a_later_bad_argument_leaves_no_constant(graph):
  with pytest.raises(TypeError, match="feed_dict must be a dict"):
    tf.staged([1, "text"], feed_dict=7)
  with pytest.raises(ValueError, match=r"thread_to_features\[1\] must have the types .*'int32'.*, got \['float32'\]"):
    tf.prefetch_join([1, 1.0])
  assert not graph.get_operations()


def test_features_with_a_variable():
  variable = tf.get_variable("v", [2])
  with pytest.raises(TypeError, match=r"features\[0\] must be .* tf.convert_to_tensor.* to convert a variable\."):
    tf.staged([variable])


def test_features_with_an_iterator():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
  with pytest.raises(TypeError, match=r"features\[0\] must be .* Iterator\. Use what its get_next\(\) returns\."):
    tf.staged([iterator])


def test_features_of_another_graph():
  with tf.Graph().as_default():
    foreign = tf.constant(1, name="foreign")
  with pytest.raises(ValueError, match=r"features\['x'\] must belong to the default graph, but 'foreign:0'"):
    tf.staged({"x": foreign})


def test_control_flow_bodies():
  with pytest.raises(ValueError, match="tf.staged must be called in the graph that the session runs"):
    tf.while_loop(lambda i: i < 3, lambda i: tf.staged(i + 1), [tf.constant(0)])


def test_tf_function():
  @tf.function
  def traced():
    return tf.staged(tf.constant(1))

  with pytest.raises(ValueError, match="not inside a tf.function"):
    traced()


def test_a_dataset_function():
  with pytest.raises(ValueError, match="not inside a tf.function, a tf.data function"):
    tf.data.Dataset.range(3).map(lambda number: tf.staged(number))


def test_feed_dict_values():
  fed = tf.placeholder(tf.float32, [None, 3], name="fed")
  features = fed + 1
  cases = [
      (3.0, TypeError, "feed_dict['fed:0'] must be a tf.Tensor"),
      (np.zeros([2, 3]), TypeError, "feed_dict['fed:0'] must be a tf.Tensor"),
      (None, TypeError, "feed_dict['fed:0'] must hold tensors only, got None"),
      (tf.constant([[1, 2, 3]]), ValueError,
       "feed_dict['fed:0'] must have type float32, the type of 'fed:0', but"),
      (tf.zeros([4]), ValueError,
       "feed_dict['fed:0'] must have a shape compatible with (?, 3), the shape of 'fed:0', but"),
      ((tf.zeros([1, 3]), tf.zeros([1, 3])), ValueError,
       "feed_dict['fed:0'] must hold as many tensors as its key, 1, got 2"),
  ]
  for value, error, message in cases:
    with pytest.raises(error, match=re.escape(message)):
      tf.staged(features, feed_dict={fed: value})


def test_feed_dict_keys(graph):
  with pytest.raises(TypeError, match=r"the key of feed_dict\['fed:0'\] must be a tf.Tensor"):
    tf.staged(tf.constant(1), feed_dict={"fed:0": tf.constant(1)})
  fixed = tf.constant(1, name="fixed")
  graph.prevent_feeding(fixed)
  with pytest.raises(ValueError, match="the tensor 'fixed:0' is marked as not feedable"):
    tf.staged(fixed + 1, feed_dict={fixed: tf.constant(2)})


def test_eager_mode(run_forked, tmp_path):
  run_forked(
      """
      import tensorflow as tf

      def refused(call, *words):
        try:
          call()
        except ValueError as error:
          assert all(word in str(error) for word in words), error
        else:
          raise AssertionError("not refused")

      refused(lambda: tf.staged(tf.constant(1)), "tf.staged", "eager execution is on")
      refused(lambda: tf.prefetch_join([tf.constant(1)]), "tf.prefetch_join", "eager")
      refused(lambda: tf.train.mark_target_node([tf.constant(1)]), "mark_target_node", "eager")
      eager = tf.constant(1)
      with tf.Graph().as_default():
        refused(lambda: tf.staged([eager]), "features[0]", "eager tensor")
      """, tmp_path, api_version="2")
