# SPDX-License-Identifier: Apache-2.0
"""RunOptions for partial runs, which the runtime's own interface does not take."""

from collections.abc import Callable
from typing import TypeVar

from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.pywrap import _pywrap_staging

_APPLICABLE = ("use_stage_subgraph_thread_pool", "stage_subgraph_thread_pool_id")

_T = TypeVar("_T")


def call_under(options: config_pb2.RunOptions, call: Callable[..., _T], *arguments) -> _T:
  """Calls a function that sets up a partial run with these options.

  Args:
    options: Which stage thread pool all of the partial run takes, if any.
    call: Sets up the partial run, in this thread.
    *arguments: Its arguments.

  Returns:
    What `call` returns.

  Raises:
    TypeError: If `options` is no `RunOptions`.
    ValueError: If another option is set: a partial run would ignore it.
  """
  if not isinstance(options, config_pb2.RunOptions):
    raise TypeError(f"options must be a tf.RunOptions, got {type(options).__name__}.")
  for field, value in options.ListFields():
    if field.name not in _APPLICABLE:
      raise ValueError(
          f"RunOptions.{field.name} does not apply to partial runs, got {value}. Only"
          f" {' and '.join(_APPLICABLE)} do.")
  return _pywrap_staging.call_under_partial_run_options(
      options.SerializeToString(), lambda: call(*arguments))
