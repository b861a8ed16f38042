# SPDX-License-Identifier: Apache-2.0
"""A process of a cluster is killed in the middle of training; once it is back, training goes on from the checkpoint."""

import contextlib
import time

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util
from tensorflow_staging.python.testing import thread_report

# The time limit from the moment at which the new process serves to the end of all training, on a busy machine.
_LIMIT_SECONDS = 20


def _open(cluster, index, weight, smart_stage, checkpoints, **options):
  cluster.open(
      cluster.workers[index], index, weight, smart_stage=smart_stage, chief=index == 0, checkpoints=str(checkpoints),
      save_iterators=True, **options)


def _train_a_little(cluster, weight, smart_stage, checkpoints):
  """Trains five records of the chief, saved after the second and the fourth, then three of the other worker.

  The other worker finds the chief's checkpoint, and saves its own position, after its first record.
  """
  for index in range(2):
    _open(cluster, index, weight, smart_stage, checkpoints)
  assert cluster.workers[0].steps(count=5) == cluster.records(0)[:5]
  assert cluster.workers[1].steps(count=3) == cluster.records(1)[:3]


@contextlib.contextmanager
def _in_time():
  """Fails if what it contains takes longer than the limit."""
  begin = time.monotonic()
  yield
  assert time.monotonic() - begin < _LIMIT_SECONDS


def _train_both_with_a_new_worker(cluster, index, weight, smart_stage, checkpoints):
  """Starts a killed worker again, and lets both train to the end of their data; returns the records of each."""
  cluster.restart_worker(index)
  with _in_time():
    _open(cluster, index, weight, smart_stage, checkpoints)
    answers = [worker.begin("train") for worker in cluster.workers]
    taken = [answer()[0] for answer in answers]
  for worker in cluster.workers:
    test_util.assert_no_stage_thread(worker.pid)
  return taken


def _rest(cluster, taken, worker):
  """Checks that these are the last records of a worker, each once and in order; returns how many came before."""
  records = cluster.records(worker)
  assert taken == records[len(records) - len(taken):]
  return len(records) - len(taken)


@stage_kinds.BOTH
def test_the_chief_goes_on_with_the_record_after_its_checkpoint(cluster, weight, smart_stage, tmp_path):
  _train_a_little(cluster, weight, smart_stage, tmp_path)
  cluster.workers[0].kill()
  # The other worker needs no chief once it trains.
  assert cluster.workers[1].steps(count=3) == cluster.records(1)[3:6]
  chiefs, others = _train_both_with_a_new_worker(cluster, 0, weight, smart_stage, tmp_path)
  assert _rest(cluster, chiefs, 0) in (4, 5), chiefs
  assert _rest(cluster, others, 1) == 6
  # The chief has restored the weight as it was when it saved: after at most five of its own records.
  assert cluster.server.weight(name=weight) == sum(cluster.records(0) + cluster.records(1)[6:])


@stage_kinds.BOTH
def test_another_worker_goes_on_with_the_record_after_its_file(cluster, weight, smart_stage, tmp_path):
  _train_a_little(cluster, weight, smart_stage, tmp_path)
  cluster.workers[1].kill()
  # The chief saves after every second step.
  assert cluster.workers[0].steps(count=4) == cluster.records(0)[5:9]
  chiefs, others = _train_both_with_a_new_worker(cluster, 1, weight, smart_stage, tmp_path)
  assert _rest(cluster, chiefs, 0) == 9
  assert _rest(cluster, others, 1) == 1
  # It has taken the two records after its file twice.
  records = cluster.records(0) + cluster.records(1) + cluster.records(1)[1:3]
  assert cluster.server.weight(name=weight) == sum(records)


@stage_kinds.BOTH
def test_all_workers_go_on_when_the_parameter_server_is_back(cluster, weight, smart_stage, tmp_path):
  _train_a_little(cluster, weight, smart_stage, tmp_path)
  cluster.server.kill()
  answer = cluster.workers[0].begin("train")
  cluster.restart_server()
  with _in_time():
    chiefs, _ = answer()
    # Only now, because a worker that finds the variables without values looks again after 30 seconds.
    others, _ = cluster.workers[1].train()
  assert _rest(cluster, chiefs, 0) in (4, 5), chiefs
  assert _rest(cluster, others, 1) == 1
  # The chief's checkpoint had no record of the other worker: it came before the file.
  assert cluster.server.weight(name=weight) == sum(cluster.records(0) + cluster.records(1)[1:])
  for worker in cluster.workers:
    test_util.assert_no_stage_thread(worker.pid)


def _step_together(cluster, count):
  """Runs steps that need a record of each worker; returns the records of each worker."""
  steps = []
  for _ in range(count):
    answers = [worker.begin("step") for worker in cluster.workers]
    steps.append([answer()[0] for answer in answers])
  return [list(records) for records in zip(*steps)]


@stage_kinds.BOTH
def test_workers_that_train_in_step_go_on_with_a_new_chief(cluster, weight, smart_stage, tmp_path):
  """With `SyncReplicasOptimizer`; when the chief is killed, the other worker waits for the chief's part of a step."""
  ours, others = cluster.records(0), cluster.records(1)
  for index in range(2):
    _open(cluster, index, weight, smart_stage, tmp_path, synchronous=2)
  assert _step_together(cluster, 5) == [ours[:5], others[:5]]
  answer = cluster.workers[1].begin("step")
  cluster.workers[0].kill()
  cluster.restart_worker(0)
  with _in_time():
    _open(cluster, 0, weight, smart_stage, tmp_path, synchronous=2)
    # The checkpoint holds the first four of the five steps.
    assert cluster.workers[0].step()[0] == ours[4]
    assert answer()[0] == others[5]
    assert _step_together(cluster, 4) == [ours[5:9], others[6:10]]
  # Each step adds the mean of its records.
  assert cluster.server.weight(name=weight, synchronous=2) == (sum(ours[:9]) + sum(others[:4] + others[5:10])) / 2
  for worker in cluster.workers[::-1]:
    worker.close()
    test_util.assert_no_stage_thread(worker.pid)


@stage_kinds.BOTH
def test_a_worker_ends_the_pool_of_a_killed_client_and_the_next_client_goes_on(cluster, weight, smart_stage, tmp_path):
  """The runs of a killed client are cancelled; also a stage that ignores CANCELLED begins none after them."""
  worker, pool = cluster.workers[0], f"gone_{smart_stage:d}"
  # A thread that an inter-op thread starts, for example one of gRPC, has the name of that.
  thread = f"{pool}_intra_op"

  def open_client():
    cluster.open(
        cluster.client, 0, weight, smart_stage=smart_stage, master=cluster.master(0), pool=pool,
        ignores_cancelled=True, checkpoints=str(tmp_path), save_iterators=True)

  open_client()
  assert cluster.client.steps(count=5) == cluster.records()[:5]
  thread_report.assert_pool_threads(thread, 1, worker.pid)
  cluster.client.kill()
  thread_report.assert_pool_threads(thread, 0, worker.pid)
  cluster.restart_client()
  with _in_time():
    open_client()
    taken, _ = cluster.client.train()
  assert _rest(cluster, taken, 0) in (4, 5), taken
  assert cluster.server.weight(name=weight) == sum(cluster.records())
  thread_report.assert_pool_threads(thread, 0, worker.pid)
