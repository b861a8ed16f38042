# SPDX-License-Identifier: Apache-2.0
"""One hook object runs the stages of one graph in several sessions, monitored ones above all."""

import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _input():
  """Returns the next element of an iterator over 0 to 9, and the scaffold that initializes it in each session."""
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(10))
  scaffold = tf.train.Scaffold(
      local_init_op=tf.group(tf.local_variables_initializer(), iterator.initializer))
  return iterator.get_next(), scaffold


def test_training_reads_all_of_the_data():
  number, scaffold = _input()
  record = tf.staged(number, capacity=2)
  seen = []
  hooks = [tf.make_prefetch_hook()]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks) as sess:
    while not sess.should_stop():
      seen.append(sess.run(record))
  assert seen == list(range(10))


def test_an_evaluation_follows_training_with_the_same_graph_and_hook():
  number, scaffold = _input()
  record = tf.staged(number, capacity=4, num_threads=2)
  global_step = tf.train.get_or_create_global_step()
  train_op = tf.group(record, tf.assign_add(global_step, 1))
  hook = tf.make_prefetch_hook()
  hooks = [hook, tf.train.StopAtStepHook(last_step=3)]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks) as sess:
    while not sess.should_stop():
      sess.run(train_op)
  # Training stopped in the middle of the data, but the evaluation reads all of it.
  creator = tf.train.ChiefSessionCreator(scaffold=scaffold)
  with tf.train.MonitoredSession(session_creator=creator, hooks=[hook]) as sess:
    assert sorted(test_util.drain(sess, record)) == list(range(10))


def test_a_hook_given_twice_runs_each_stage_once():
  number, scaffold = _input()
  record = tf.staged(number)
  hooks = [tf.make_prefetch_hook(), tf.make_prefetch_hook()]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks) as sess:
    assert test_util.drain(sess, record) == list(range(10))


def test_a_new_session_after_a_preemption_runs_the_stages_again():
  number, scaffold = _input()
  record = tf.staged(number)
  preempted = []

  class Preempt(tf.train.SessionRunHook):
    """Raises the error of a lost worker, once, after the third step."""

    def after_run(self, run_context, run_values):
      if run_values.results == 2 and not preempted:
        preempted.append(True)
        raise tf.errors.AbortedError(None, None, "preempted")

    def before_run(self, run_context):
      return tf.train.SessionRunArgs(record)

  hooks = [tf.make_prefetch_hook(), Preempt()]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks) as sess:
    seen = test_util.drain(sess, record)
  assert preempted
  # The aborted step ran again in the new session, where the data starts with its first element.
  assert seen == [0, 1, *range(10)]


def test_two_sessions_at_the_same_time_do_not_disturb_each_other():
  number, scaffold = _input()
  record = tf.staged(number)
  hook = tf.make_prefetch_hook()
  with tf.Session() as first, tf.Session() as second:
    for sess in (first, second):
      sess.run(scaffold.local_init_op)
      hook.after_create_session(sess)
    assert first.run(record) == 0
    hook.end(first)
    assert test_util.drain(second, record) == list(range(10))
    hook.end(second)


def test_the_hook_adds_nothing_to_a_finalized_graph(graph):
  record = tf.staged(test_util.dataset_record(3))
  graph.finalize()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [0, 1, 2]


def test_a_graph_without_stages_needs_nothing_from_the_hook():
  global_step = tf.train.get_or_create_global_step()
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    assert sess.run(global_step) == 0


def test_a_graph_that_was_exported_and_imported_keeps_its_stages():
  record = tf.staged(test_util.dataset_record(3), name="input")
  definition = tf.train.export_meta_graph()
  with tf.Graph().as_default():
    tf.train.import_meta_graph(definition)
    with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, record.name) == [0, 1, 2]


def test_a_hook_before_the_prefetch_hook_gets_a_record_at_its_end():
  record = tf.staged(test_util.dataset_record(10))
  finals = [tf.train.FinalOpsHook(record) for _ in range(4)]
  with tf.train.MonitoredTrainingSession(hooks=[*finals, tf.make_prefetch_hook()]) as sess:
    assert sess.run(record) == 0
  assert [final.final_ops_values for final in finals] == [1, 2, 3, 4]


def test_a_hook_after_the_prefetch_hook_gets_what_is_buffered():
  record = tf.staged(test_util.dataset_record(10))
  finals = [tf.train.FinalOpsHook(record) for _ in range(4)]
  with pytest.raises(tf.errors.CancelledError):
    with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook(), *finals]) as sess:
      assert sess.run(record) == 0


class _AwaitQueueRunners(tf.train.SessionRunHook):
  """Ends after the threads of queue runners, except those that wait for the coordinator to close the queues."""

  def end(self, session):
    test_util.wait_until(lambda: not any(
        thread.name.startswith("QueueRunnerThread") and not thread.name.endswith("close_on_stop")
        for thread in threading.enumerate()))


def test_a_queue_runner_that_needs_records_ends_with_the_stages():
  record = tf.staged(test_util.Source().tensor())
  queue = tf.queue.FIFOQueue(1_000_000, [tf.int64], [[]])
  tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(record)]))
  number = queue.dequeue()
  # The stages' end cancels the queue runner before the coordinator stops.
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook(), _AwaitQueueRunners()]) as sess:
    assert sess.run(number) == 0


def test_the_hook_accepts_daemon_and_start():
  record = tf.staged(test_util.dataset_record(1))
  hook = tf.make_prefetch_hook(daemon=True, start=True)
  with tf.train.MonitoredTrainingSession(hooks=[hook]) as sess:
    assert sess.run(record) == 0


@pytest.mark.parametrize("session", [None, "grpc://nowhere"])
def test_only_a_session_can_run_stages(session):
  with pytest.raises(TypeError, match="session must be a tf.compat.v1.Session, got"):
    tf.make_prefetch_hook().after_create_session(session)


def test_only_a_coordinator_can_stop_stages():
  with tf.Session() as sess:
    with pytest.raises(TypeError, match="coord must be None or a tf.train.Coordinator, got"):
      tf.make_prefetch_hook().after_create_session(sess, coord="now")


def test_the_thread_of_a_stage_is_seen_by_its_name():
  """The fixture `no_stage_left` finds threads by name; a running stage has such a thread."""
  source = test_util.Source()
  tf.staged(source.tensor())
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    source.wait_until_asked(1)
    assert len(test_util.stage_threads()) == 1
  test_util.assert_no_stage_thread()
