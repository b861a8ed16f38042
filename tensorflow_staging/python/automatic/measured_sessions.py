# SPDX-License-Identifier: Apache-2.0
"""Measures the runs of sessions for the command `compare`."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.session import callable_operations
from tensorflow_staging.python.session import early_runs
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
  do_run, make_callable, from_options = base._do_run, base.make_callable, base._make_callable_from_options

  def note(session: session_lib.BaseSession, is_step: bool) -> None:
    if is_step:
      clocks.note(session, lambda: stage_stats.stats(session))

  def is_step(session: session_lib.BaseSession, operations: Iterable[ops.Operation], feeds: Any) -> bool:
    known = clocks.of(session).is_step
    operations = list(operations)
    key = (tuple(map(id, operations)), tuple(map(id, feeds)))
    if key not in known:
      known[key] = early_runs.depends_on(_TYPES, operations, feeds)
    return known[key]

  def measured_do_run(self, handle, targets, fetches, feeds, *options):
    result = do_run(self, handle, targets, fetches, feeds, *options)
    note(self, is_step(self, [*targets, *(tensor.op for tensor in fetches)], feeds))
    return result

  def measured(self, call: Callable[..., Any], counts: bool) -> Callable[..., Any]:

    def measured_call(*arguments, **keywords):
      result = call(*arguments, **keywords)
      note(self, counts)
      return result

    return measured_call

  def measured_make_callable(self, fetches, feed_list=None, accept_options=False):
    call = make_callable(self, fetches, feed_list, accept_options)
    if feed_list is not None:
      return call  # It calls the session's method `run`.
    return measured(self, call, is_step(self, callable_operations.of_fetches(self, fetches), {}))

  def measured_from_options(self, options):
    operations, feeds = callable_operations.of_options(self, options)
    return measured(self, from_options(self, options), is_step(self, operations, feeds))

  base._do_run = measured_do_run
  base.make_callable = measured_make_callable
  base._make_callable_from_options = measured_from_options
