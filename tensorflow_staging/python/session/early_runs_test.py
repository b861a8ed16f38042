# SPDX-License-Identifier: Apache-2.0
"""A run that needs a record starts the stages of a monitored session before its hook is called; others do not."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_KINDS = pytest.mark.parametrize("kind", ["plain", "staged", "smart", "both"])


class _RunsFirst(tf.train.SessionRunHook):
  """Runs an op when the session is created."""

  def __init__(self, op):
    self._op = op
    self.value = None

  def after_create_session(self, session, coord):
    self.value = session.run(self._op)


def _record(kind, count=8, **options):
  record = test_util.dataset_record(count)
  return tf.staged(record, **options) if kind in ("staged", "both") else record


def _session(kind, hooks=(), **options):
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = kind in ("smart", "both")
  ours = [] if kind == "plain" else [tf.make_prefetch_hook()]
  return tf.train.MonitoredTrainingSession(config=config, hooks=[*hooks, *ours], **options)


@_KINDS
def test_the_ready_op_takes_a_record(kind):
  record = _record(kind)
  total = tf.get_variable("total", initializer=tf.constant(0, tf.int64))
  with tf.control_dependencies([tf.assign_add(total, record)]):
    ready = tf.report_uninitialized_variables([total])
  with _session(kind, scaffold=tf.train.Scaffold(ready_op=ready)) as sess:
    assert sess.run([record, total])[0] == 1
    assert sess.run(record) == 2


@_KINDS
def test_another_hook_takes_a_record_first(kind):
  record = _record(kind)
  first = _RunsFirst(record)
  with _session(kind, [first]) as sess:
    assert first.value == 0
    assert test_util.drain(sess, record) == list(range(1, 8))


@_KINDS
def test_a_function_of_the_scaffold_takes_a_record(kind):
  record = _record(kind)
  taken = []
  scaffold = tf.train.Scaffold(init_fn=lambda scaffold, sess: taken.append(sess.run(record)))
  with _session(kind, scaffold=scaffold) as sess:
    taken.append(sess.run(record))
  assert taken == [0, 1]


@_KINDS
def test_updates_of_batch_normalisation_under_a_synchronous_optimizer(kind):
  value = tf.cast(_record(kind, 20), tf.float32)
  x = tf.layers.batch_normalization(tf.fill([4, 3], value), training=True, momentum=0.0)
  tf.get_variable("w", [], initializer=tf.ones_initializer())
  step = tf.train.get_or_create_global_step()
  optimizer = tf.train.SyncReplicasOptimizer(
      tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1, total_num_replicas=1)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = optimizer.minimize(tf.reduce_mean(x) * tf.trainable_variables()[-1], global_step=step)
  hook = optimizer.make_session_run_hook(is_chief=True, num_tokens=0)
  with _session(kind, [hook], stop_grace_period_secs=2) as sess:
    first = sess.run([value, train])[0]
    # Without a stage, too, the creation of the session has taken records.
    assert first > 0
    assert sess.run([value, train])[0] > first


class _AwaitsQueue(tf.train.SessionRunHook):
  """Waits for a queue runner, as a hook does that needs longer than the queue runner."""

  def __init__(self, queue):
    self._is_full = tf.equal(queue.size(), 3)

  def after_create_session(self, session, coord):
    test_util.wait_until(lambda: session.run(self._is_full) or coord.should_stop())


@_KINDS
def test_a_queue_runner_takes_records_before_the_hook_is_called(kind):
  queue = tf.FIFOQueue(3, [tf.int64], [[]])
  tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(_record(kind))]))
  record = queue.dequeue()
  with _session(kind, [_AwaitsQueue(queue)]) as sess:
    assert test_util.drain(sess, record) == list(range(8))


@_KINDS
def test_a_callable_takes_a_record_before_the_hook_is_called(kind):
  record = _record(kind)

  class Calls(_RunsFirst):

    def after_create_session(self, session, coord):
      self.call = session.make_callable(self._op)
      self.value = self.call()

  first = Calls(record)
  with _session(kind, [first]) as sess:
    assert first.value == 0
    assert [int(first.call()), *test_util.drain(sess, record)] == list(range(1, 8))


class _LosesSession(_RunsFirst):
  """Behaves in the first step as if the server of the session were lost."""

  sessions = 0

  def after_create_session(self, session, coord):
    super().after_create_session(session, coord)
    self.sessions += 1

  def before_run(self, run_context):
    if self.sessions == 1:
      raise tf.errors.AbortedError(None, None, "lost")


def test_a_session_that_replaces_a_lost_one_starts_its_stages_early_as_well():
  record = _record("staged")
  first = _LosesSession(record)
  with _session("staged", [first]) as sess:
    assert sess.run(record) == 1
  assert first.sessions == 2 and first.value == 0


def test_what_other_runs_initialise_is_there_when_the_stages_start():
  table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1], tf.int64), tf.constant([5, 6], tf.int64)), -1)
  scale = tf.get_variable("scale", initializer=tf.constant(1, tf.int64))
  record = tf.staged(table.lookup(test_util.dataset_record(2)) * scale)
  scaffold = tf.train.Scaffold(init_fn=lambda scaffold, sess: scale.load(10, sess))
  with _session("staged", [_RunsFirst(scale.read_value())], scaffold=scaffold) as sess:
    assert test_util.drain(sess, record) == [50, 60]


def test_a_fed_record_needs_no_stage():
  record = _record("staged")
  double = record * 2

  class Feeds(_RunsFirst):

    def after_create_session(self, session, coord):
      self.value = session.run(double, {record: 4})
      self.threads = test_util.stage_threads()

  first = Feeds(None)
  with _session("staged", [first]) as sess:
    assert first.value == 8 and not first.threads
    assert sess.run(double) == 0


def test_without_the_hook_nothing_starts():
  record = _record("staged")
  with pytest.raises(tf.errors.FailedPreconditionError, match="tf.make_prefetch_hook"):
    tf.train.MonitoredSession(hooks=[_RunsFirst(record)])


def test_other_sessions_of_the_graph_are_not_watched():
  record = _record("staged")
  with _session("staged") as sess:
    assert sess.run(record) == 0
    with tf.Session() as other:
      for name in ("_do_run", "make_callable", "_make_callable_from_options"):
        assert name not in vars(sess._tf_sess())
        assert name not in vars(other)
