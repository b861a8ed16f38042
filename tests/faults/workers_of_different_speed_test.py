# SPDX-License-Identifier: Apache-2.0
"""Four workers of different speed, each with a server of its own in this process, and one parameter server."""

import threading
import time

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import loopback
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_WORKERS = 4
_RECORDS = 60
# How long a record and a step of each worker take: neither, a slow input, a slow step, both by turns.
_INPUT_SECONDS = (0, 0.01, 0, 0.005)
_STEP_SECONDS = (0, 0, 0.01, 0.005)
_LIMIT_SECONDS = 30

# Servers cannot be stopped, so all tests share them.
_cluster = None


@pytest.fixture
def targets():
  """The addresses of the workers' servers."""
  global _cluster
  if _cluster is None:
    addresses = [f"127.0.0.1:{port}" for port in loopback.free_ports(1 + _WORKERS)]
    spec = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    _cluster = [tf.train.Server(spec, "ps", 0)] + [tf.train.Server(spec, "worker", index) for index in range(_WORKERS)]
  return [server.target for server in _cluster[1:]]


class _Worker(threading.Thread):
  """Trains a weight on the parameter server; each step adds its record."""

  def __init__(self, index: int, target: str, name: str, smart_stage: bool, initialized: threading.Event):
    super().__init__(daemon=True)
    self._initialized = initialized
    self._index = index
    self._target = target
    self._name = name
    self._smart_stage = smart_stage
    self.taken = []
    self.error = None
    self.start()

  def run(self):
    try:
      self._train()
    except Exception as error:
      self.error = error

  def _train(self):
    with tf.Graph().as_default():
      setter = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{self._index}")
      with tf.device(setter):
        record = self._record()
        weight = tf.get_variable(self._name, initializer=tf.zeros([], tf.int64))
        step = tf.assign_add(weight, record, use_locking=True)
      config = smart_stage_sessions.smart_stage_config(capacity=2) if self._smart_stage else tf.ConfigProto()
      config.device_filters.extend(["/job:ps", f"/job:worker/task:{self._index}"])
      # A session that finds the variables without values looks again after 30 seconds.
      if self._index > 0:
        self._initialized.wait(_LIMIT_SECONDS)
      with tf.train.MonitoredTrainingSession(
          self._target, is_chief=self._index == 0, hooks=[tf.make_prefetch_hook()], config=config) as sess:
        self._initialized.set()
        while not sess.should_stop():
          self.taken.append(sess.run([record, step])[0])
          time.sleep(_STEP_SECONDS[self._index])

  def _record(self) -> tf.Tensor:
    def wait(number):
      time.sleep(_INPUT_SECONDS[self._index])
      return number

    dataset = tf.data.Dataset.range(1000 * self._index, 1000 * self._index + _RECORDS)
    dataset = dataset.map(lambda number: tf.ensure_shape(tf.numpy_function(wait, [number], tf.int64), []))
    iterator = tf.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    number = iterator.get_next()
    if not self._smart_stage:
      return tf.staged(number, capacity=2)
    record = tf.identity(number)
    tf.train.mark_target_node([record])
    return record


@stage_kinds.BOTH
def test_each_takes_its_own_records_once_and_in_order(targets, smart_stage):
  name = f"speed_{smart_stage:d}"
  initialized = threading.Event()
  workers = [_Worker(index, target, name, smart_stage, initialized) for index, target in enumerate(targets)]
  deadline = time.monotonic() + _LIMIT_SECONDS
  for worker in workers:
    worker.join(deadline - time.monotonic())
    assert not worker.is_alive()
    assert worker.error is None, worker.error
  records = [[1000 * index + number for number in range(_RECORDS)] for index in range(_WORKERS)]
  assert [worker.taken for worker in workers] == records
  with tf.device("/job:ps/task:0"):
    weight = tf.get_variable(name, [], tf.int64)
  with tf.Session(targets[0]) as sess:
    assert sess.run(weight) == sum(map(sum, records))
  test_util.assert_no_stage_thread()
