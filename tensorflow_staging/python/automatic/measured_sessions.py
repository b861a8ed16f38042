# SPDX-License-Identifier: Apache-2.0
"""Measures the runs of sessions for the command `compare`."""

from collections.abc import Callable
from typing import Any

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.session import early_runs
from tensorflow_staging.python.session import run_methods
from tensorflow_staging.python.stats import stage_stats

_TYPES = (vocabulary.TAKE_OP, *early_runs.SOURCE_OPS)


class _State:
  is_watching = False


def watch_if_asked() -> None:
  """Measures the runs of all sessions from now on if the environment says so. Later calls do nothing."""
  clocks = measured_run.begin_if_asked()
  if clocks is not None and not _State.is_watching:
    _State.is_watching = True
    _watch(clocks)


def _watch(clocks: measured_run.Clocks) -> None:
  """Watches the runs of all sessions."""
  base = session_lib.BaseSession

  def measure(
      session: session_lib.BaseSession, operations: list[ops.Operation], feeds: dict[tensor_lib.Tensor, Any],
      run: Callable[[], Any]) -> Any:
    result = run()
    if is_step(session, operations, feeds):
      clocks.note(session, lambda: stage_stats.stats(session))
    return result

  def is_step(
      session: session_lib.BaseSession, operations: list[ops.Operation], feeds: dict[tensor_lib.Tensor, Any]) -> bool:
    known = clocks.of(session).is_step
    key = (tuple(map(id, operations)), tuple(map(id, feeds)))
    if key not in known:
      known[key] = early_runs.depends_on(_TYPES, operations, feeds)
    return known[key]

  own = {name: getattr(base, name) for name in run_methods.NAMES}
  for name, method in run_methods.surrounded(own.__getitem__, measure).items():
    setattr(base, name, method)
