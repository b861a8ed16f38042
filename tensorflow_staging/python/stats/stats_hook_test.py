# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.StatsHook` logs a line about each stage, and writes summaries."""

import glob
import pathlib
import queue
import time

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.platform import tf_logging
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tensorflow_staging.python.session import step_hooks
from tensorflow_staging.python.testing import test_util


@pytest.fixture
def lines(monkeypatch):
  logged = queue.SimpleQueue()

  def info(text, *args):
    line = text % args
    if line.startswith("Stage ") and "has ended after" not in line:
      logged.put(line)

  monkeypatch.setattr(tf_logging, "info", info)
  return logged


@pytest.fixture
def warnings(monkeypatch):
  logged = []
  monkeypatch.setattr(tf_logging, "warning", lambda text, *args: logged.append(text % args))
  return logged


@pytest.fixture
def verbosity():
  before = tf.logging.get_verbosity()
  yield tf.logging.set_verbosity
  tf.logging.set_verbosity(before)


def _next(lines):
  return lines.get(timeout=test_util.WAIT_SECONDS)


def _all(lines):
  return [lines.get() for _ in range(lines.qsize())]


def _train(hook, record, steps=20):
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook(), hook]) as sess:
    for _ in range(steps):
      sess.run(record)


def test_a_line_after_every_n_steps(lines):
  record = tf.staged(test_util.dataset_record(100), capacity=2)
  _train(tf.staging.StatsHook(every_n_steps=5), record)
  logged = _all(lines)
  assert len(logged) == 4
  for line in logged:
    assert line.startswith("Stage 'prefetch': ")
    assert float(line.split(": ")[1].split(" records/s")[0]) > 0


def test_lines_whenever_that_many_seconds_have_passed(lines):
  record = tf.staged(test_util.dataset_record(100), capacity=2)
  hook = tf.staging.StatsHook(every_n_secs=0.01)
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook(), hook]) as sess:
    assert _next(lines).startswith("Stage 'prefetch': 0.0 records/s")
    sess.run(record)
    while _next(lines).startswith("Stage 'prefetch': 0.0 records/s"):
      pass


def test_a_line_for_each_stage(lines):
  first = tf.staged(test_util.dataset_record(100), name="first")
  second = tf.staged(test_util.dataset_record(100), name="second")
  _train(tf.staging.StatsHook(every_n_steps=20), [first, second])
  assert [line.split("'")[1] for line in _all(lines)] == ["first", "second"]


def test_a_slow_stage_needs_more_threads(lines):
  record = tf.staged(tf.py_func(lambda: (time.sleep(0.02), 1)[1], [], tf.int64))
  _train(tf.staging.StatsHook(every_n_steps=10), record, steps=10)
  line, = _all(lines)
  assert line.endswith((
      "If what it reads is the limit, only a quicker source helps.", "give the program more cores, or less to compute.",
      "run this one with fewer beside it, and look again."))


def test_a_session_without_stages_warns_once(lines, warnings, verbosity):
  verbosity(tf.logging.INFO)
  hook = tf.staging.StatsHook(every_n_steps=1)
  for session in (1, 2):
    _train(hook, tf.constant(1))
    assert len(warnings) == session
  assert warnings[0].startswith("tf.staging.StatsHook has nothing to report: no stage runs: the graph has no ")
  assert _all(lines) == []


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
  logged = _all(lines)
  assert len(logged) == 2
  for line in logged:
    assert float(line.split(": ")[1].split(" records/s")[0]) > 0


def _summaries(folder):
  """Returns the steps and the values of each tag."""
  path, = glob.glob(str(folder / "events.*"))
  values = {}
  for event in tf.train.summary_iterator(path):
    for value in event.summary.value:
      text = value.HasField("tensor")
      written = tf.make_ndarray(value.tensor).item().decode() if text else value.simple_value
      values.setdefault(value.tag, []).append((event.step, written))
  return values


_TAGS = {
    f"staging/prefetch/{name}" for name in (
        "records", "records_per_sec", "step_waits", "producer_waits", "capacity", "producers", "step_ms", "region_ms",
        "hidden_ms")
}
_VERDICT = "staging/prefetch/verdict"


@pytest.mark.parametrize("kind", ["folder", "path", "writer"])
def test_summaries(tmp_path, lines, kind):
  record = tf.staged(test_util.dataset_record(100), capacity=3)
  step = tf.train.get_or_create_global_step().assign_add(10)
  writer = {"folder": str, "path": pathlib.Path, "writer": tf.summary.FileWriter}[kind](tmp_path)
  _train(tf.staging.StatsHook(every_n_steps=20, summary_writer=writer), [record, step], steps=40)
  tf.summary.FileWriterCache.clear()
  if kind == "writer":
    writer.close()
  values = _summaries(tmp_path)
  assert set(values) == _TAGS | {_VERDICT}
  (step, verdict), = values.pop(_VERDICT)
  assert step == 400
  assert verdict.startswith("Stage 'prefetch' has ended after 40 records: it h")
  for written in values.values():
    # The last report is about the whole training.
    assert [step for step, _ in written] == [200, 400, 400]
    assert all(value >= 0 for _, value in written)
  assert [value for _, value in values["staging/prefetch/capacity"]] == [3, 3, 3]
  assert [value for _, value in values["staging/prefetch/producers"]] == [1, 1, 1]


@pytest.mark.parametrize("global_step", [False, True])
def test_summaries_of_the_thread(tmp_path, lines, global_step):
  fetches = [tf.staged(test_util.dataset_record(100))]
  if global_step:
    fetches.append(tf.train.get_or_create_global_step().assign_add(10))
  hooks = [tf.make_prefetch_hook(), tf.staging.StatsHook(every_n_secs=0.01, summary_writer=tmp_path)]
  with tf.train.MonitoredSession(hooks=hooks) as sess:
    for _ in range(12):
      sess.run(fetches)
    _all(lines)
    # A report that has begun since.
    _next(lines)
    _next(lines)
  tf.summary.FileWriterCache.clear()
  values = _summaries(tmp_path)
  assert set(values) == _TAGS | {_VERDICT}
  for written in values.values():
    steps = [step for step, _ in written]
    assert steps == sorted(steps)
    assert steps[-1] == (120 if global_step else 12)


def test_lines_are_events_of_a_trace(tmp_path, lines):
  record = tf.staged(test_util.dataset_record(100))
  tf.compat.v2.profiler.experimental.start(str(tmp_path))
  _train(tf.staging.StatsHook(every_n_steps=20), record)
  tf.compat.v2.profiler.experimental.stop()
  path, = tmp_path.glob("**/*.xplane.pb")
  planes = xplane_pb2.XSpace.FromString(path.read_bytes()).planes
  names = {metadata.name for plane in planes for metadata in plane.event_metadata.values()}
  line, = _all(lines)
  assert line in names


def test_only_a_hook_that_counts_steps_is_called_in_steps():
  hooks = [tf.staging.StatsHook(), tf.staging.StatsHook(every_n_secs=1), tf.staging.StatsHook(every_n_steps=1)]
  assert step_hooks.of_session(hooks)[1] == hooks[2:]


@pytest.mark.parametrize("arguments", [{}, dict(every_n_steps=1)])
def test_a_subclass_may_call_what_it_overrides(lines, arguments):

  class Counts(tf.staging.StatsHook):
    steps = 0

    def before_run(self, run_context):
      return super().before_run(run_context)

    def after_run(self, run_context, run_values):
      super().after_run(run_context, run_values)
      self.steps += 1

  hook = Counts(**arguments)
  _train(hook, tf.staged(test_util.dataset_record(100)), steps=3)
  assert hook.steps == 3
  assert len(_all(lines)) == (3 if arguments else 0)


@pytest.mark.parametrize("arguments,error,message", [
    (dict(every_n_steps=0), ValueError, "every_n_steps must be positive, got 0"),
    (dict(every_n_secs=float("nan")), ValueError, "every_n_secs must be positive, got nan"),
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
