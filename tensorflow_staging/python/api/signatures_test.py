# SPDX-License-Identifier: Apache-2.0
"""Positional arguments and default values are those of DeepRec's documentation."""

import inspect

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.stages import stage_graph

_STAGED = {
    "features": inspect.Parameter.empty,
    "feed_dict": None,
    "capacity": 1,
    "num_threads": 1,
    "num_clients": 1,
    "timeout_millis": 300000,
    "closed_exception_types": None,
    "ignored_exception_types": None,
    "use_stage_subgraph_thread_pool": False,
    "stage_subgraph_thread_pool_id": 0,
    "stage_subgraph_stream_id": 0,
    "name": None,
}
# DeepRec's join has neither pools nor streams nor generators.
_JOIN = ["feed_dict", "capacity", "num_clients", "timeout_millis", "closed_exception_types",
         "ignored_exception_types", "name"]


def _by_position(function) -> dict:
  return {
      parameter.name: parameter.default
      for parameter in inspect.signature(function).parameters.values()
      if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
  }


def test_staged():
  assert list(_by_position(tf.staged).items()) == list(_STAGED.items())


def test_prefetch_join():
  expected = {"thread_to_features": inspect.Parameter.empty} | {name: _STAGED[name] for name in _JOIN}
  assert list(_by_position(tf.prefetch_join).items()) == list(expected.items())


def test_default_values(graph):
  tf.staged(tf.constant(1))
  runner, = graph.get_collection(stage_graph.RUNNERS_COLLECTION)
  options = config_pb2.PrefetchRunnerOptions.FromString(runner)
  assert options.name == "prefetch"
  assert options.closed_exceptions == [tf.errors.OUT_OF_RANGE]
  assert options.ignored_exceptions == []
  assert not options.named_feed_input_tensors
  assert not options.run_options.use_stage_subgraph_thread_pool
  assert len(options.fetch_ops) == 1
  put = graph.get_operation_by_name(options.fetch_ops[0])
  assert put.get_attr("capacity") == 1
  assert put.get_attr("timeout_millis") == 300000
