# SPDX-License-Identifier: Apache-2.0
"""Creating a session with a wrong SmartStage option fails, and the error names the field."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

# By test id: option fields, the number of thread pools, and a pattern of the error message.
_WRONG = {
    "capacity": (dict(capacity=-2), 0, r"smart_stage_options\.capacity is -2; it must be at least 1"),
    "num_threads": (dict(num_threads=-2), 0, r"smart_stage_options\.num_threads is -2"),
    "num_clients": (dict(num_clients=-3), 0, r"smart_stage_options\.num_clients is -3"),
    "timeout_millis": (dict(timeout_millis=-4), 0, r"smart_stage_options\.timeout_millis is -4"),
    "name": (dict(name="my stage"), 0, r"smart_stage_options\.name is 'my stage'; it must be a name scope"),
    "open_scope": (dict(name="stage/"), 0, r"smart_stage_options\.name is 'stage/'; .* must not end with '/'"),
    "negative_stream":
        (dict(stage_subgraph_stream_id=-5), 0, r"smart_stage_options\.stage_subgraph_stream_id is -5"),
    "stream":
        (dict(stage_subgraph_stream_id=1), 0,
         r"smart_stage_options\.stage_subgraph_stream_id is 1; it must be from 0 to 0"),
    "pool": (dict(pool=2), 2, r"stage_subgraph_thread_pool_id 2; it must be from 0 to 1"),
    "negative_pool": (dict(pool=-1), 2, r"stage_subgraph_thread_pool_id -1; it must be from 0 to 1"),
    "no_pool": (dict(pool=0), 0, r"use_stage_subgraph_thread_pool, .*ConfigProto\.session_stage_subgraph_thread_pool"),
}


def _config(pool=None, *, pools=0, on=True, **fields) -> tf.ConfigProto:
  """Returns a configuration with these fields in its SmartStage options, unchecked."""
  config = tf.ConfigProto()
  for _ in range(pools):
    config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=1, intra_op_threads_num=1)
  optimizer_options = config.graph_options.optimizer_options
  optimizer_options.do_smart_stage = on
  options = optimizer_options.smart_stage_options
  for name, value in fields.items():
    setattr(options, name, value)
  if pool is not None:
    options.runner_options.run_options.use_stage_subgraph_thread_pool = True
    options.runner_options.run_options.stage_subgraph_thread_pool_id = pool
  return config


def _config_for(graph) -> tf.ConfigProto:
  return smart_stage_sessions.smart_stage_config(graph=graph)


@pytest.mark.parametrize("fields,pools,message", _WRONG.values(), ids=_WRONG)
def test_a_wrong_field_is_named_when_the_session_is_made(fields, pools, message):
  with pytest.raises(tf.errors.InvalidArgumentError, match=message):
    tf.Session(config=_config(pools=pools, **fields))


@pytest.mark.parametrize("fields,pools,message", [_WRONG["capacity"], _WRONG["pool"]])
def test_a_monitored_session_fails_as_well(fields, pools, message):
  with pytest.raises(tf.errors.InvalidArgumentError, match=message):
    tf.train.MonitoredTrainingSession(config=_config(pools=pools, **fields))


def test_a_stream_may_be_as_high_as_there_are_streams():
  config = _config(stage_subgraph_stream_id=1)
  rewrite_options = config.graph_options.rewrite_options
  rewrite_options.use_multi_stream = type(rewrite_options).ON
  rewrite_options.multi_stream_opts.multi_stream_num = 2
  tf.Session(config=config).close()
  config.graph_options.optimizer_options.smart_stage_options.stage_subgraph_stream_id = 2
  with pytest.raises(tf.errors.InvalidArgumentError, match=r"is 2; it must be from 0 to 1.*multi_stream_num"):
    tf.Session(config=config)


def test_options_in_range_are_accepted():
  tf.Session(config=_config(pool=1, pools=2, capacity=3, num_threads=2, timeout_millis=5)).close()


def test_options_are_not_checked_while_smart_stage_is_off():
  tf.Session(config=_config(on=False, capacity=-2)).close()


def test_a_session_of_a_server_fails_at_the_first_run_at_the_latest():
  server = tf.train.Server.create_local_server()
  one = tf.constant(1)
  with pytest.raises(tf.errors.InvalidArgumentError, match=r"smart_stage_options\.capacity is -2"):
    with tf.Session(server.target, config=_config(capacity=-2)) as sess:
      sess.run(one)


@pytest.mark.parametrize("make", [tf.Session, lambda config: tf.train.MonitoredTrainingSession(config=config)])
def test_a_session_with_another_graph_than_that_of_the_options_is_refused(make):
  with pytest.raises(ValueError, match=r"smart_stage_options\.graph_key is '.+', but .* is '.+'"):
    make(config=_config_for(tf.Graph()))


def test_a_session_with_the_graph_of_the_options_is_created(graph):
  tf.Session(config=_config_for(graph)).close()
  other = tf.Graph()
  tf.Session(graph=other, config=_config_for(other)).close()
  tf.train.MonitoredTrainingSession(config=_config_for(graph)).close()


def test_options_without_a_graph_fit_any_session():
  assert not tf.SmartStageOptions().graph_key
  tf.Session(graph=tf.Graph(), config=_config_for(None)).close()


def test_the_graph_does_not_matter_while_smart_stage_is_off():
  config = _config_for(tf.Graph())
  config.graph_options.optimizer_options.do_smart_stage = False
  tf.Session(config=config).close()


def test_fetching_a_draw_that_is_not_carried_says_how_to_carry_it():
  record = test_util.dataset_record(5)
  inside = tf.add(record, tf.random.uniform([], maxval=10, dtype=record.dtype), name="inside")
  carried = tf.add(inside, 100, name="carried")
  step = tf.cast(carried, tf.float32) * tf.get_variable("weight", initializer=1.0)
  with smart_stage_sessions.smart_stage_session() as sess:
    with pytest.raises(
        tf.errors.FailedPreconditionError,
        match=r"(?s)'random_uniform.*'prefetch'.*tf\.train\.mark_target_node"):
      sess.run([inside, step])
    assert sess.run(step) in range(100, 110)


def test_without_the_elements_a_tensor_that_is_not_carried_cannot_be_fetched():
  record = test_util.dataset_record(5)
  inside = tf.add(record, 10, name="inside")
  step = tf.cast(inside + 100, tf.float32) * tf.get_variable("weight", initializer=1.0)
  with smart_stage_sessions.smart_stage_session(carry_elements=False) as sess:
    with pytest.raises(
        tf.errors.FailedPreconditionError, match=r"(?s)'IteratorGetNext:0'.*'prefetch'.*carry_elements"):
      sess.run([inside, step])
    assert sess.run(step) == 110


def test_a_marked_tensor_can_be_fetched_beside_the_step():
  inside = tf.add(test_util.dataset_record(5), 10, name="inside")
  tf.train.mark_target_node(inside)
  step = tf.cast(inside + 100, tf.float32) * tf.get_variable("weight", initializer=1.0)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([inside, step]) == [10, 110.0]
