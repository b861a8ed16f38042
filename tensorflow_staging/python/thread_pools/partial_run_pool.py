# SPDX-License-Identifier: Apache-2.0
"""Applies RunOptions to partial runs, for which the runtime's interface has no such argument."""

from collections.abc import Callable
from typing import TypeVar

from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.pywrap import _pywrap_staging

_APPLICABLE = ("use_stage_subgraph_thread_pool", "stage_subgraph_thread_pool_id")

_T = TypeVar("_T")


def call_under(options: config_pb2.RunOptions, call: Callable[..., _T], *arguments) -> _T:
  """Calls a function that sets up a partial run, and applies `options` to that run.

  Args:
    options: Selects the stage thread pool for the whole partial run, if any.
    call: Sets up the partial run, in this thread.
    *arguments: The arguments of `call`.

  Returns:
    The result of `call`.

  Raises:
    TypeError: If `options` is not a `RunOptions`.
    ValueError: If another option is set, which a partial run would ignore.
  """
  if not isinstance(options, config_pb2.RunOptions):
    raise TypeError(f"options must be a tf.RunOptions, got {type(options).__name__}.")
  for field, value in options.ListFields():
    if field.name not in _APPLICABLE:
      raise ValueError(
          f"RunOptions.{field.name} does not apply to partial runs, got {value}. Set only"
          f" {' and '.join(_APPLICABLE)}.")
  return _pywrap_staging.call_under_partial_run_options(
      options.SerializeToString(), lambda: call(*arguments))
