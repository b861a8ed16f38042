# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.stats` reports what the stages of a session do."""

import threading
import time

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.stages import stage_graph
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


def _only(stats):
  assert len(stats) == 1
  return stats[0]


def test_a_record_is_put_taken_or_in_the_buffer():
  record = tf.staged(test_util.dataset_record(100), capacity=3)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    for _ in range(10):
      test_util.wait_until(lambda: _only(tf.staging.stats(sess)).waiting_puts == 1)
      sess.run(record)
    test_util.wait_until(lambda: _only(tf.staging.stats(sess)).waiting_puts == 1)
    stats = _only(tf.staging.stats(sess))
  assert stats.name == "prefetch"
  assert stats.running
  assert stats.num_threads == 1
  assert (stats.capacity, stats.room, stats.autotune, stats.capacity_bytes) == (3, 3, False, 0)
  assert (stats.put, stats.taken, stats.records) == (13, 10, 3)
  assert stats.bytes == 3 * 8
  assert (stats.dropped, stats.discarded, stats.ignored) == (0, 0, 0)
  assert (stats.take_wait.calls, stats.take_wait.waits) == (10, 0)
  assert stats.put_wait.calls == 13
  # All but the first three found the buffer full.
  assert stats.put_wait.waits == 10
  assert stats.error is None


def test_waits_are_measured_in_seconds():
  source = test_util.Source()
  source.hold()
  record = tf.staged(source.tensor())
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    step = threading.Thread(target=sess.run, args=[record])
    step.start()
    test_util.wait_until(lambda: _only(tf.staging.stats(sess)).waiting_takes == 1)
    time.sleep(0.06)  # The step waits at least so long.
    source.release()
    step.join()
    wait = _only(tf.staging.stats(sess)).take_wait
  assert wait.calls == wait.waits == 1
  assert 0.05 < wait.total_seconds < 5
  assert wait.mean_seconds == wait.total_seconds
  assert wait.p50_seconds == wait.p99_seconds == pytest.approx(wait.total_seconds, rel=0.13)


def test_the_end_of_the_data():
  record = tf.staged(test_util.dataset_record(3))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.OutOfRangeError):
      while True:
        sess.run(record)
    # The stage meets the end once more, for the next step.
    test_util.wait_until(lambda: _only(tf.staging.stats(sess)).error)
    stats = _only(tf.staging.stats(sess))
  assert not stats.running
  assert stats.num_threads == 0
  assert stats.taken == 3
  assert stats.error == "OUT_OF_RANGE: Stage 'prefetch' has reached the end of its data."


def test_a_stage_of_smart_stage():
  features = test_util.dataset_record(100) * 2
  weight = tf.Variable(0, dtype=tf.int64)
  train = weight.assign_add(features)
  with smart_stage_sessions.smart_stage_session(capacity=2, capacity_bytes=1000) as sess:
    sess.run(train)
    stats = _only(tf.staging.stats(sess))
  assert stats.taken == 1
  assert (stats.capacity, stats.capacity_bytes) == (2, 1000)


def test_a_monitored_session():
  record = tf.staged(test_util.dataset_record(100))
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook()]) as sess:
    sess.run(record)
    assert _only(tf.staging.stats(sess)).taken == 1
  assert tf.staging.stats(sess) == []


def test_a_session_of_a_server():
  record = tf.staged(test_util.dataset_record(100), capacity=2)
  server = tf.train.Server.create_local_server()
  with tf.Session(server.target) as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)
    assert _only(tf.staging.stats(sess)).taken == 1


def test_without_running_stages_the_list_is_empty():
  record = tf.staged(test_util.dataset_record(100))
  with tf.Session() as sess:
    assert tf.staging.stats(sess) == []
    with tf.make_prefetch_hook().running(sess):
      sess.run(record)
      assert len(tf.staging.stats(sess)) == 1
    assert tf.staging.stats(sess) == []


def test_a_session_that_is_closed_runs_no_stages():
  record = tf.staged(test_util.dataset_record(100))
  with tf.Session() as sess:
    tf.make_prefetch_hook().after_create_session(sess)
    sess.run(record)
    assert len(tf.staging.stats(sess)) == 1
    sess.close()
    assert tf.staging.stats(sess) == []


def test_what_is_no_session():
  with pytest.raises(TypeError, match="session must be .*, a step of tf.staging.ahead or a callback .*, got 3"):
    tf.staging.stats(3)


@pytest.mark.parametrize("kind", ["one_shot", "initializable"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_stage_at_the_end_of_its_data_does_not_run(kind, threads):
  dataset = tf.data.Dataset.range(3)
  if kind == "one_shot":
    iterator = tf.data.make_one_shot_iterator(dataset)
  else:
    iterator = tf.data.make_initializable_iterator(dataset)
  record = tf.staged(iterator.get_next(), num_threads=threads)
  with tf.Session() as sess:
    if kind == "initializable":
      sess.run(iterator.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert len(test_util.drain(sess, record)) == 3
      test_util.wait_until(lambda: _only(tf.staging.stats(sess)).error)
      stats = _only(tf.staging.stats(sess))
      assert not stats.running
      assert str(stats).endswith(": the data has ended.")


def test_the_list_prints_a_line_for_each_stage():
  first = tf.staged(test_util.dataset_record(100), name="first")
  second = tf.staged(test_util.dataset_record(100), name="second")
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    for _ in range(20):
      sess.run([first, second])
    stats = tf.staging.stats(sess)
  lines = str(stats).splitlines()
  assert lines == repr(stats).splitlines() == [str(stage) for stage in stats]
  assert [line.split(" records/s")[0].rpartition(" ")[0] for line in lines] == ["Stage 'first':", "Stage 'second':"]
  assert all(stage.gain.split("; ")[0] in line for stage, line in zip(stats, lines))
  assert isinstance(stats, list)
  assert stats[0].name == "first"
  page = stats._repr_html_()
  assert page.startswith("<table>")
  assert page.count("<tr>") == 3


@pytest.mark.alone
def test_times_of_steps_and_records():
  record = tf.staged(tf.py_func(lambda: (time.sleep(0.02), 1)[1], [], tf.int64), name="slow")
  step = tf.py_func(lambda number: (time.sleep(0.01), number)[1], [record], tf.int64)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    for _ in range(15):
      sess.run(step)
    stats, = [stage for stage in tf.staging.stats(sess) if stage.name == "slow"]
  assert stats.steps.count == 14
  assert 14 * 0.02 <= stats.steps.total_seconds < 14 * 0.2
  assert 0 < stats.steps.wait_seconds < stats.steps.total_seconds
  assert 0.02 <= stats.region.total_seconds / stats.region.count < 0.2
  assert 0 <= stats.cores_busy <= 1
  assert stats.gain.startswith("hid ")


@pytest.mark.parametrize("tuned", [False, True])
def test_what_a_stage_chooses(tuned):
  setting = tf.data.AUTOTUNE if tuned else 2
  record = tf.staged(test_util.dataset_record(100), capacity=setting, num_threads=setting)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)
    stats = _only(tf.staging.stats(sess))
  assert (stats.autotune, stats.tunes_threads) == (tuned, tuned)
  assert (stats.capacity_settled, stats.threads_settled) == (False, False)


@pytest.mark.parametrize("deterministic,on_server", [(True, False), (False, False), (True, True)])
def test_whether_several_producers_keep_the_order(deterministic, on_server):
  record = tf.staged(test_util.dataset_record(100), num_threads=2, deterministic=deterministic)
  target = tf.train.Server.create_local_server().target if on_server else ""
  with tf.Session(target) as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)
    stats = _only(tf.staging.stats(sess))
  keeps_order = deterministic and not on_server
  assert (stats.orders_threads, stats.keeps_order) == (keeps_order, keeps_order)
  assert (", in any order, " in str(stats)) != keeps_order


def test_a_capacity_that_has_settled():
  record = tf.staged(test_util.dataset_record(10**9), capacity=tf.data.AUTOTUNE)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    step = sess.make_callable(record)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
      step()
      if _only(tf.staging.stats(sess)).capacity_settled:
        return
  raise AssertionError("The capacity has not settled.")


def _without(sess):
  stats = tf.staging.stats(sess)
  assert stats == []
  assert str(stats) in stats._repr_html_().replace("&#x27;", "'")
  return str(stats)


def test_without_a_stage_it_says_why():
  record = test_util.dataset_record(100)
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = True
  with tf.Session() as sess:
    assert "SmartStage is off in the configuration of the session. Give the session config=" in _without(sess)
  with tf.Session(config=config) as sess:
    assert "the session has no prefetch hook. Give it hooks=[tf.make_prefetch_hook()]" in _without(sess)
    with tf.make_prefetch_hook().running(sess):
      assert "SmartStage has found nothing to run ahead of the step." in _without(sess)
  assert "the session is closed" in _without(sess)
  staged = tf.staged(record)
  with tf.Session() as sess:
    assert "the session has no prefetch hook. Give it hooks=[tf.make_prefetch_hook()]" in _without(sess)
    with tf.make_prefetch_hook().running(sess):
      sess.run(staged)
    assert "the hook of the stages has ended" in _without(sess)


def test_a_graph_of_an_earlier_version():
  record = tf.staged(test_util.dataset_record(100))
  _forget_the_op()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)
    with pytest.raises(tf.errors.UnimplementedError, match="no op that reads the statistics of the stage"):
      tf.staging.stats(sess)


def test_a_graph_of_an_earlier_version_in_a_scope():
  tf.staged(test_util.dataset_record(3), name="input")
  _forget_the_op()
  definition = tf.train.export_meta_graph()
  with tf.Graph().as_default():
    tf.train.import_meta_graph(definition, import_scope="model")
    with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, "model/input/TensorBufferTake:0") == [0, 1, 2]


def test_an_imported_graph():
  tf.staged(test_util.dataset_record(3), name="input")
  definition = tf.train.export_meta_graph()
  with tf.Graph().as_default():
    tf.train.import_meta_graph(definition, import_scope="model")
    with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
      sess.run("model/input/TensorBufferTake:0")
      assert _only(tf.staging.stats(sess)).name == "model/input"


def _forget_the_op():
  """Lets the options of the only stage be as an earlier version wrote them."""
  runners = tf.get_collection_ref(stage_graph.RUNNERS_COLLECTION)
  options = config_pb2.PrefetchRunnerOptions.FromString(runners[0])
  options.stats_tensor = ""
  runners[0] = options.SerializeToString()
