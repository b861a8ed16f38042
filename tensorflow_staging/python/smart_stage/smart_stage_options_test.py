# SPDX-License-Identifier: Apache-2.0
"""`tf.SmartStageOptions` returns the message of the same name."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2


def test_every_argument_is_in_the_message():
  options = tf.SmartStageOptions(
      capacity=40,
      num_threads=4,
      num_clients=2,
      timeout_millis=1000,
      closed_exception_types=(tf.errors.OUT_OF_RANGE, tf.errors.ABORTED),
      ignored_exception_types=(tf.errors.InvalidArgumentError,),
      use_stage_subgraph_thread_pool=True,
      stage_subgraph_thread_pool_id=3,
      stage_subgraph_stream_id=1,
      name="ahead")
  assert options == config_pb2.SmartStageOptions(
      capacity=40,
      num_threads=4,
      num_clients=2,
      timeout_millis=1000,
      stage_subgraph_stream_id=1,
      name="ahead",
      runner_options=config_pb2.PrefetchRunnerOptions(
          name="ahead",
          run_options=config_pb2.RunOptions(
              use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=3),
          closed_exceptions=[tf.errors.OUT_OF_RANGE, tf.errors.ABORTED],
          ignored_exceptions=[tf.errors.INVALID_ARGUMENT]))


def test_defaults():
  options = tf.SmartStageOptions()
  assert (options.capacity, options.num_threads, options.num_clients) == (tf.data.AUTOTUNE, 1, 1)
  assert options.timeout_millis == 300000
  assert list(options.runner_options.closed_exceptions) == [tf.errors.OUT_OF_RANGE]
  assert not options.runner_options.ignored_exceptions
  assert not options.runner_options.run_options.use_stage_subgraph_thread_pool


def test_num_client_is_another_spelling_of_num_clients():
  assert tf.SmartStageOptions(num_client=3).num_clients == 3
  assert tf.SmartStageOptions(num_clients=3, num_client=3).num_clients == 3
  with pytest.raises(ValueError, match="give one of them, got num_clients=3 and num_client=2"):
    tf.SmartStageOptions(num_clients=3, num_client=2)


def test_equal_options_are_equal_messages():
  """A client and a server may each make them; the session makes the names of its stages unique."""
  assert tf.SmartStageOptions() == tf.SmartStageOptions(graph=None, name=None)
  assert not tf.SmartStageOptions().name
  assert tf.SmartStageOptions(name="ahead").name == "ahead"


def test_the_elements_can_be_left_out():
  assert not tf.SmartStageOptions().omit_elements
  assert tf.SmartStageOptions(carry_elements=False).omit_elements
  with pytest.raises(TypeError, match="carry_elements must be True or False, got 1"):
    tf.SmartStageOptions(carry_elements=1)


def test_the_message_fits_into_a_config():
  config = tf.ConfigProto()
  options = config.graph_options.optimizer_options
  options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=7))
  assert options.smart_stage_options.capacity == 7


@pytest.mark.parametrize(
    "argument,value,error",
    [("capacity", 0, ValueError), ("num_threads", 0, ValueError), ("num_clients", 0, ValueError),
     ("num_client", 0, ValueError), ("num_client", "2", TypeError),
     ("timeout_millis", 0, ValueError), ("stage_subgraph_thread_pool_id", -1, ValueError),
     ("stage_subgraph_thread_pool_id", 1, ValueError), ("stage_subgraph_stream_id", -1, ValueError),
     ("capacity", "1", TypeError), ("graph", "g", TypeError), ("name", 1, TypeError),
     ("name", "my stage", ValueError), ("name", "_stage", ValueError),
     ("closed_exception_types", ("EOF",), TypeError)])
def test_bad_arguments(argument, value, error):
  with pytest.raises(error, match=rf"^{argument}.* must be .*got"):
    tf.SmartStageOptions(**{argument: value})
