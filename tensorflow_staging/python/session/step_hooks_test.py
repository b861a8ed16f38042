# SPDX-License-Identifier: Apache-2.0
"""A monitored session calls all hooks in steps but those that promise to do nothing there."""

import types

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.session import step_hooks


class _Recorder(tf.train.SessionRunHook):
  """Notes the steps that it sees."""

  def __init__(self):
    self.calls = []

  def before_run(self, run_context):
    self.calls.append("before")

  def after_run(self, run_context, run_values):
    self.calls.append("after")


class _Inherits(tf.train.SessionRunHook):
  pass


class _OverridesAfterRun(step_hooks.IdleHook):

  def after_run(self, run_context, run_values):
    pass


class _OverridesBeforeRun(step_hooks.IdleHook):

  def before_run(self, run_context):
    pass


def _with_an_own_method():
  hook = step_hooks.IdleHook()
  hook.after_run = lambda run_context, run_values: None
  return hook


def _with_the_inherited_method():
  hook = _OverridesAfterRun()
  hook.after_run = types.MethodType(tf.train.SessionRunHook.after_run, hook)
  return hook


def _run(sess, steps=1):
  for _ in range(steps):
    sess.run("step:0")


@pytest.fixture(autouse=True)
def step():
  tf.constant(1, name="step")


@pytest.mark.parametrize("make,is_called", [
    (step_hooks.IdleHook, False),
    (tf.make_prefetch_hook, False),
    (_with_the_inherited_method, False),
    (_with_an_own_method, True),
    (_OverridesAfterRun, True),
    (_OverridesBeforeRun, True),
    (_Inherits, True),
    (types.SimpleNamespace, True),
])
def test_which_hooks_are_called(make, is_called):
  hook, other = make(), _Recorder()
  for hooks in ([hook, other], (other, hook)):
    _, called = step_hooks.of_session(hooks)
    assert list(called) == [each for each in hooks if is_called or each is other]


@pytest.mark.parametrize("hooks", [[], [_Inherits()], [_Recorder(), _Inherits()], iter([step_hooks.IdleHook()])])
def test_without_an_idle_hook_the_session_uses_what_it_was_given(hooks):
  known, called = step_hooks.of_session(hooks)
  assert known is hooks
  assert called is hooks


def test_a_session_does_not_call_what_an_idle_hook_inherits(monkeypatch):
  calls = []
  monkeypatch.setattr(tf.train.SessionRunHook, "before_run", lambda hook, run_context: calls.append(hook))
  inherits, idle = _Inherits(), step_hooks.IdleHook()
  with tf.train.MonitoredSession(hooks=[idle, inherits]) as sess:
    _run(sess)
  assert calls == [inherits]


def test_a_change_of_the_list_counts_from_the_next_step_on():
  first, second = _Recorder(), _Recorder()
  hooks = [step_hooks.IdleHook(), first]
  with tf.train.MonitoredSession(hooks=hooks) as sess:
    _run(sess)
    hooks.append(second)
    _run(sess, steps=2)
    hooks.remove(first)
    _run(sess)
  assert first.calls == ["before", "after"] * 3
  assert second.calls == ["before", "after"] * 3


def test_a_method_that_is_assigned_during_the_session_is_called():
  hook, calls = _Inherits(), []
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook(), hook]) as sess:
    _run(sess)
    hook.after_run = lambda run_context, run_values: calls.append(run_values.results)
    _run(sess)
  assert calls == [None]
