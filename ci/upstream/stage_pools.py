# SPDX-License-Identifier: Apache-2.0
"""Gives every session a stage thread pool, and lets every run in it use the pool.

TensorFlow's own tests, run in this way, show that a pool changes which threads run a graph, and nothing else. A run
that chooses other threads itself keeps them, and so do the partial runs of distributed sessions, which have no pools.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session


def _with_pool(options: config_pb2.RunOptions) -> config_pb2.RunOptions:
  """Returns a copy of the options that uses the pool, or the options themselves if they choose other threads."""
  if options.inter_op_thread_pool or options.experimental.use_run_handler_pool:
    return options
  changed = config_pb2.RunOptions()
  changed.CopyFrom(options)
  changed.use_stage_subgraph_thread_pool = True
  return changed


@contextlib.contextmanager
def everywhere() -> Iterator[None]:
  """Patches TensorFlow's sessions as long as the context is open."""
  base, runtime = session.BaseSession, session.tf_session
  new_session_options = runtime.TF_NewSessionOptions
  run = base._call_tf_sessionrun
  make_callable = base._make_callable_from_options
  partial_run_setup = base.partial_run_setup

  def new_session_options_with_pool(target=None, config=None):
    changed = config_pb2.ConfigProto()
    if config is not None:
      changed.CopyFrom(config)
    changed.session_stage_subgraph_thread_pool.add(global_name="upstream_tests")
    return new_session_options(target=target, config=changed)

  def run_on_pool(self, options, feed_dict, fetch_list, target_list, run_metadata):
    given = config_pb2.RunOptions()
    if options is not None:
      given.ParseFromString(runtime.TF_GetBuffer(options))
    buffer = runtime.TF_NewBufferFromString(_with_pool(given).SerializeToString())
    try:
      return run(self, buffer, feed_dict, fetch_list, target_list, run_metadata)
    finally:
      runtime.TF_DeleteBuffer(buffer)

  def make_callable_on_pool(self, callable_options):
    changed = config_pb2.CallableOptions()
    changed.CopyFrom(callable_options)
    changed.run_options.CopyFrom(_with_pool(callable_options.run_options))
    return make_callable(self, changed)

  def partial_run_setup_on_pool(self, fetches, feeds=None):
    options = None if self._target else _with_pool(config_pb2.RunOptions())
    return partial_run_setup(self, fetches, feeds, options=options)

  with (
      mock.patch.object(runtime, "TF_NewSessionOptions", new_session_options_with_pool),
      mock.patch.object(base, "_call_tf_sessionrun", run_on_pool),
      mock.patch.object(base, "_make_callable_from_options", make_callable_on_pool),
      mock.patch.object(base, "partial_run_setup", partial_run_setup_on_pool),
  ):
    yield
