# SPDX-License-Identifier: Apache-2.0
"""The methods of a session that all runs of Python's sessions pass, with something around each run."""

from collections.abc import Callable
from typing import Any
from typing import Optional

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib

from tensorflow_staging.python.session import callable_operations

NAMES = ("_do_run", "make_callable", "_make_callable_from_options")

# Gets the session, the targets of a run with the operations of its fetches, what is fed, as keys, and what runs it.
# Returns what the run returns.
AroundRun = Callable[
    [session_lib.BaseSession, list[ops.Operation], dict[tensor_lib.Tensor, Any], Callable[[], Any]], Any]


def surrounded(own: Callable[[str], Callable[..., Any]], around: AroundRun) -> dict[str, Callable[..., Any]]:
  """Returns functions in place of these methods, by name. The first argument of each is the session.

  Args:
    own: Returns the method of the name, as a function.
    around: Is called instead of each run, of callables too, and runs it.
  """

  def do_run(
      session: session_lib.BaseSession, handle: Any, targets: list[ops.Operation], fetches: list[tensor_lib.Tensor],
      feeds: dict[tensor_lib.Tensor, Any], *options: Any) -> Any:
    run = lambda: own("_do_run")(session, handle, targets, fetches, feeds, *options)
    return around(session, [*targets, *(tensor.op for tensor in fetches)], feeds, run)

  def make_callable(
      session: session_lib.BaseSession, fetches: Any, feed_list: Optional[list[Any]] = None,
      accept_options: bool = False) -> Callable[..., Any]:
    call = own("make_callable")(session, fetches, feed_list, accept_options)
    if feed_list is not None:
      return call  # It calls the session's method `run`.
    return around_calls(session, call, callable_operations.of_fetches(session, fetches), {})

  def make_callable_from_options(
      session: session_lib.BaseSession, options: config_pb2.CallableOptions) -> Callable[..., Any]:
    call = own("_make_callable_from_options")(session, options)
    return around_calls(session, call, *callable_operations.of_options(session, options))

  def around_calls(
      session: session_lib.BaseSession, call: Callable[..., Any], operations: list[ops.Operation],
      feeds: dict[tensor_lib.Tensor, Any]) -> Callable[..., Any]:
    return lambda *arguments, **keywords: around(session, operations, feeds, lambda: call(*arguments, **keywords))

  return dict(zip(NAMES, (do_run, make_callable, make_callable_from_options)))
