# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.StatsHook` logs a line about each stage, and writes summaries."""

import glob
import pathlib
import time
import types

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.stats import stats_hook
from tensorflow_staging.python.testing import test_util


@pytest.fixture
def lines(monkeypatch):
  logged = []

  def info(text, *args):
    line = text % args
    if line.startswith("Stage "):
      logged.append(line)

  monkeypatch.setattr(stats_hook.tf_logging, "info", info)
  return logged


@pytest.fixture
def warnings(monkeypatch):
  logged = []
  monkeypatch.setattr(stats_hook.tf_logging, "warning", lambda text, *args: logged.append(text % args))
  return logged


@pytest.fixture
def verbosity():
  before = tf.logging.get_verbosity()
  yield tf.logging.set_verbosity
  tf.logging.set_verbosity(before)


def _train(hook, record, steps=20):
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook(), hook]) as sess:
    for _ in range(steps):
      sess.run(record)


def test_a_line_after_every_n_steps(lines):
  record = tf.staged(test_util.dataset_record(100), capacity=2)
  _train(tf.staging.StatsHook(every_n_steps=5), record)
  assert len(lines) == 4
  for line in lines:
    assert line.startswith("Stage 'prefetch': ")
    assert float(line.split(": ")[1].split(" records/s")[0]) > 0


@pytest.mark.parametrize("quick,slow", [(0, 20), (2000, 0), (250, 20)], ids=["slow", "quick", "slow at the end"])
def test_a_line_after_every_n_secs(lines, monkeypatch, quick, slow):
  now = 0.0
  monkeypatch.setattr(stats_hook, "time", types.SimpleNamespace(monotonic=lambda: now))
  record = tf.staged(test_util.dataset_record(quick + slow))
  hooks = [tf.make_prefetch_hook(), tf.staging.StatsHook(every_n_secs=0.5)]
  expected, last = [], 0.0
  logged = []
  with tf.train.MonitoredSession(hooks=hooks) as sess:
    for step in range(quick + slow):
      now += 0.0003 if step < quick else 0.3
      sess.run(record)
      if now - last >= 0.5:
        expected.append(step)
        last = now
      if len(lines) > len(logged):
        logged.append(step)
  assert logged == expected
  assert len(logged) > 0


def test_a_line_for_each_stage(lines):
  first = tf.staged(test_util.dataset_record(100), name="first")
  second = tf.staged(test_util.dataset_record(100), name="second")
  _train(tf.staging.StatsHook(every_n_steps=20), [first, second])
  assert [line.split("'")[1] for line in lines] == ["first", "second"]


def test_a_slow_stage_needs_more_threads(lines):
  record = tf.staged(tf.py_func(lambda: (time.sleep(0.02), 1)[1], [], tf.int64))
  _train(tf.staging.StatsHook(every_n_steps=10), record, steps=10)
  line, = lines
  assert line.endswith("the stage is slower than the step; raise num_threads (now 1).")


def test_a_session_without_stages_warns_once(lines, warnings, verbosity):
  verbosity(tf.logging.INFO)
  hook = tf.staging.StatsHook(every_n_steps=1)
  for session in (1, 2):
    _train(hook, tf.constant(1))
    assert len(warnings) == session
  assert "the session has no stage. tf.staging.explain(graph, config) says" in warnings[0]
  assert lines == []


@pytest.mark.parametrize("level,warned", [(tf.logging.WARN, True), (tf.logging.INFO, False)])
def test_lines_that_are_not_shown_are_a_warning(warnings, verbosity, level, warned):
  verbosity(level)
  _train(tf.staging.StatsHook(every_n_steps=5), tf.staged(test_util.dataset_record(100)))
  assert ["set_verbosity(tf.compat.v1.logging.INFO)" in warning for warning in warnings] == [True] * warned


def test_a_hook_that_only_writes_summaries_does_not_warn(tmp_path, warnings, verbosity):
  verbosity(tf.logging.WARN)
  hook = tf.staging.StatsHook(every_n_steps=5, summary_writer=str(tmp_path))
  _train(hook, tf.staged(test_util.dataset_record(100)))
  tf.summary.FileWriterCache.clear()
  assert warnings == []


def test_counters_begin_anew_with_each_session(lines):
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.staging.StatsHook(every_n_steps=10)
  for _ in range(2):
    _train(hook, record, steps=10)
  assert len(lines) == 2
  for line in lines:
    assert float(line.split(": ")[1].split(" records/s")[0]) > 0


@pytest.mark.parametrize("kind", ["folder", "path", "writer"])
def test_summaries(tmp_path, lines, kind):
  record = tf.staged(test_util.dataset_record(100))
  step = tf.train.get_or_create_global_step().assign_add(10)
  writer = {"folder": str, "path": pathlib.Path, "writer": tf.summary.FileWriter}[kind](tmp_path)
  _train(tf.staging.StatsHook(every_n_steps=10, summary_writer=writer), [record, step])
  tf.summary.FileWriterCache.clear()
  if kind == "writer":
    writer.close()
  path, = glob.glob(str(tmp_path / "events.*"))
  values = {
      value.tag: (event.step, value.simple_value) for event in tf.train.summary_iterator(path)
      for value in event.summary.value
  }
  assert set(values) == {
      f"staging/prefetch/{name}" for name in ("records", "records_per_sec", "step_waits", "producer_waits")
  }
  for written_at, value in values.values():
    assert written_at == 200
    assert value >= 0


@pytest.mark.parametrize("arguments,error,message", [
    (dict(every_n_steps=0), ValueError, "every_n_steps must be positive, got 0"),
    (dict(every_n_secs=-1), ValueError, "every_n_secs must be positive, got -1"),
    (dict(every_n_steps=1, every_n_secs=1), ValueError,
     "At most one of every_n_steps and every_n_secs may be given, got 1 and 1"),
    (dict(summary_writer=3), TypeError, "summary_writer must be None, a folder or .*FileWriter, got 3 of type int"),
])
def test_wrong_arguments(arguments, error, message):
  with pytest.raises(error, match=message):
    tf.staging.StatsHook(**arguments)


def test_a_number_of_steps_that_is_no_number():
  with pytest.raises(TypeError, match="every_n_steps must be a positive number, got '100' of type str"):
    tf.staging.StatsHook(every_n_steps="100")
