# SPDX-License-Identifier: Apache-2.0
"""Spares a monitored session the calls of hooks that do nothing in a step."""

from collections.abc import Sequence
from typing import Any

from tensorflow.python.training import session_run_hook

_METHODS_OF_STEPS = ("before_run", "after_run")


class IdleHook(session_run_hook.SessionRunHook):
  """A hook that need not be called in steps, as long as it has `before_run` and `after_run` from `SessionRunHook`.

  A subclass may override them, and is then called. A session decides that before its first step: nobody may assign
  these methods to such a hook, or to its class, later. Other hooks make no such promise, even if they inherit both.
  """


def of_session(hooks: Any) -> tuple[Any, Sequence[session_run_hook.SessionRunHook]]:
  """Decides which hooks a monitored session calls in steps: all but the idle ones.

  Args:
    hooks: The object with the hooks that the program gave the session.

  Returns:
    What `hooks` equals until the session has to ask again, which it does before each step because a program may
    change its list, and the hooks to call, in their order. Without an idle hook, both are `hooks` itself.
  """
  # Something else may yield its hooks only once, or others each time.
  if type(hooks) in (list, tuple):
    called = [hook for hook in hooks if not _is_idle(hook)]
    if len(called) < len(hooks):
      return hooks[:], called
  return hooks, hooks


def _is_idle(hook: session_run_hook.SessionRunHook) -> bool:
  return isinstance(hook, IdleHook) and all(
      getattr(getattr(hook, name), "__func__", None) is getattr(session_run_hook.SessionRunHook, name)
      for name in _METHODS_OF_STEPS)
