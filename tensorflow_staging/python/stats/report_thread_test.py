# SPDX-License-Identifier: Apache-2.0
"""The thread of `tf.staging.StatsHook` lives as long as its session, whatever happens to both; nobody waits for it."""

import contextlib
import gc
import queue
import threading

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.stats import stage_stats
from tensorflow_staging.python.testing import test_util

_OFTEN = 0.01
_NEVER = 1e10


@pytest.fixture
def logged(monkeypatch):
  """The hook's lines and warnings, as they come."""
  texts = queue.SimpleQueue()

  def log(text, *args):
    if (text := text % args).startswith(("Stage ", "tf.staging.StatsHook")):
      texts.put(text)

  for level in ("info", "warning"):
    monkeypatch.setattr(tf_logging, level, log)
  monkeypatch.setattr(tf_logging, "get_verbosity", lambda: tf_logging.INFO)
  return texts


def _await(texts, part):
  """Waits for a text with this part."""
  while part not in (text := texts.get(timeout=test_util.WAIT_SECONDS)):
    pass
  return text


def _thread():
  """Returns the thread of the session that has one; that of an earlier one may be about to end."""
  threads = lambda: [thread for thread in threading.enumerate() if thread.name == "staging_stats"]
  test_util.wait_until(lambda: len(threads()) == 1)
  return threads()[0]


def _ends(thread):
  thread.join(test_util.WAIT_SECONDS)
  return not thread.is_alive()


@contextlib.contextmanager
def _monitored(*hooks):
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook(), *hooks]) as sess:
    yield sess


def test_it_reports_while_a_step_waits_for_its_record(logged):
  source = test_util.Source()
  source.hold()
  record = tf.staged(source.tensor())
  with _monitored(tf.staging.StatsHook(every_n_secs=_OFTEN)) as sess:
    step = threading.Thread(target=sess.run, args=[record])
    step.start()
    line = _await(logged, "Steps waited for records 100%")
    source.release()
    step.join()
  assert line.endswith("a step waits, and no record has come; the input of the stage is slow, or hangs.")


def test_it_ends_with_the_hook():
  hook = tf.staging.StatsHook(every_n_secs=_NEVER)
  with tf.Session() as sess:
    hook.after_create_session(sess)
    thread = _thread()
    hook.end(sess)
    assert _ends(thread)


def test_it_ends_with_a_loop_that_raises():
  with pytest.raises(ZeroDivisionError), _monitored(tf.staging.StatsHook(every_n_secs=_NEVER)):
    thread = _thread()
    raise ZeroDivisionError
  assert _ends(thread)


def test_it_ends_with_the_session():
  sess = tf.Session()
  tf.staging.StatsHook(every_n_secs=_OFTEN).after_create_session(sess)
  thread = _thread()
  sess.close()
  assert _ends(thread)


def test_it_keeps_no_session_alive():
  sess = tf.Session()
  hook = tf.staging.StatsHook(every_n_secs=_OFTEN)
  hook.after_create_session(sess)
  thread = _thread()
  del sess
  gc.collect()
  assert _ends(thread)


def test_each_session_has_its_own(logged):
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.staging.StatsHook(every_n_secs=_OFTEN)
  for _ in range(2):
    with _monitored(hook) as sess:
      thread = _thread()
      sess.run(record)
      _await(logged, "Stage 'prefetch'")
    assert _ends(thread)


def test_a_session_that_replaces_a_lost_one_has_its_own(logged):
  threads = []

  class LosesTheFirstSession(tf.train.SessionRunHook):

    def before_run(self, run_context):
      threads.append(_thread())
      if len(threads) == 1:
        raise tf.errors.AbortedError(None, None, "lost")

  record = tf.staged(test_util.dataset_record(100))
  with _monitored(tf.staging.StatsHook(every_n_secs=_OFTEN), LosesTheFirstSession()) as sess:
    sess.run(record)
    first, second = threads
    assert first is not second
    assert _ends(first)
    _await(logged, "Stage 'prefetch'")
  assert _ends(second)


def test_it_survives_a_session_that_cannot_answer(monkeypatch, logged):
  failures = [tf.errors.UnavailableError(None, None, "lost"), RuntimeError("Attempted to use a closed Session.")]
  stats = stage_stats.stats

  def fails_at_first(session):
    if failures:
      raise failures.pop()
    return stats(session)

  monkeypatch.setattr(stage_stats, "stats", fails_at_first)
  record = tf.staged(test_util.dataset_record(100))
  with _monitored(tf.staging.StatsHook(every_n_secs=_OFTEN)) as sess:
    sess.run(record)
    assert logged.get(timeout=test_util.WAIT_SECONDS).startswith("Stage 'prefetch'")
  assert not failures


@pytest.mark.parametrize("error", [tf.errors.UnimplementedError(None, None, "old graph"), ZeroDivisionError()])
def test_it_ends_with_a_warning_if_another_try_would_not_help(monkeypatch, logged, error):

  def fails(session):
    raise error

  monkeypatch.setattr(stage_stats, "stats", fails)
  hook = tf.staging.StatsHook(every_n_secs=_OFTEN)
  with _monitored(hook):
    warning = _await(logged, "reports no more")
    assert _ends(hook._thread)
  assert repr(error) in warning


def test_nobody_waits_for_a_report_in_progress(monkeypatch, logged):
  begun, may_end = threading.Event(), threading.Event()
  stats = stage_stats.stats

  def waits(session):
    result = stats(session)
    begun.set()
    may_end.wait()
    return result

  monkeypatch.setattr(stage_stats, "stats", waits)
  tf.staged(test_util.dataset_record(100))
  with _monitored(tf.staging.StatsHook(every_n_secs=_OFTEN)):
    thread = _thread()
    assert begun.wait(test_util.WAIT_SECONDS)
  # The session is closed.
  assert thread.is_alive()
  may_end.set()
  assert _ends(thread)
  assert logged.empty()


_PROGRAM = """
import os
import sys
import threading

import tensorflow as tf
from tensorflow_staging.python.stats import stage_stats

tf.logging.set_verbosity(tf.logging.INFO)
hook = tf.staging.StatsHook(every_n_secs=0.001)

def report_in(sess):
  reported = threading.Event()
  stats = stage_stats.stats
  def noticed(session):
    reported.set()
    return stats(session)
  stage_stats.stats = noticed
  assert reported.wait(30)

tf.staged(tf.constant(1))
sess = tf.Session()
tf.make_prefetch_hook().after_create_session(sess)
hook.after_create_session(sess)
report_in(sess)
"""


def test_a_program_ends_while_it_reports(tmp_path):
  output = test_util.run_program(_PROGRAM + "print('end')", tmp_path)
  assert output == "end\n"


def test_a_program_ends_while_a_report_waits(tmp_path):
  output = test_util.run_program(_PROGRAM + """
begun = threading.Event()
def waits_for_ever(session):
  begun.set()
  threading.Event().wait()
stage_stats.stats = waits_for_ever
assert begun.wait(30)
print("end")
""", tmp_path)
  assert output == "end\n"


def test_a_forked_child_may_end_and_use_the_hook(tmp_path):
  output = test_util.run_program(_PROGRAM + """
child = os.fork()
if child == 0:
  assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
  hook.end(sess)
  with tf.Graph().as_default(), tf.Session() as other:
    hook.after_create_session(other)
    report_in(other)
    hook.end(other)
  os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
report_in(sess)
""", tmp_path)
  assert output == "7\n"
