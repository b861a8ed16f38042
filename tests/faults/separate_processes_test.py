# SPDX-License-Identifier: Apache-2.0
"""Stages in a cluster whose parameter server, workers and client are separate processes."""

import time

import pytest

from tensorflow_staging.python.testing import parameter_server_cluster
from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util
from tensorflow_staging.python.testing import thread_report

# The options for a session of each kind.
_KINDS = {
    "none": {"smart_stage": False, "stage": False},
    "staged": {"smart_stage": False},
    "smart_stage": {"smart_stage": True},
}

_SYNCHRONOUS_STEPS = 6
# The time limit for closing, whatever a stage waits for.
_LIMIT_SECONDS = 5
# The time limit for the rest of a worker's training, which takes 5 seconds on a busy machine.
_TRAINING_SECONDS = 15


def _assert_rest(answer, records):
  """Checks that training took exactly these records, and ended soon after the last one."""
  taken, seconds = answer
  assert taken == records
  assert seconds < _TRAINING_SECONDS


@stage_kinds.BOTH
def test_each_worker_takes_its_own_records_once_and_in_order(cluster, weight, smart_stage):
  for index, worker in enumerate(cluster.workers):
    cluster.open(worker, index, weight, smart_stage=smart_stage, chief=index == 0)
  answers = [worker.begin("train") for worker in cluster.workers]
  for index, answer in enumerate(answers):
    _assert_rest(answer(), cluster.records(index))
  assert cluster.server.weight(name=weight) == sum(cluster.records(0) + cluster.records(1))
  for worker in cluster.workers:
    test_util.assert_no_stage_thread(worker.pid)


@stage_kinds.BOTH
def test_a_record_waits_at_its_worker_and_the_variable_lives_on_the_server(cluster, weight, smart_stage):
  worker = cluster.workers[1]
  cluster.open(worker, 1, weight, smart_stage=smart_stage)
  assert worker.devices() == {
      "TensorBufferTake": "/job:worker/replica:0/task:1/device:CPU:0",
      "VariableV2": "/job:ps/replica:0/task:0/device:CPU:0",
      "ApplyGradientDescent": "/job:ps/replica:0/task:0/device:CPU:0",
  }
  worker.close()


@stage_kinds.BOTH
def test_the_process_of_the_worker_has_the_threads_of_a_stages_pool(cluster, weight, smart_stage):
  worker, pool = cluster.workers[0], f"pool_{smart_stage:d}"
  # A thread that an inter-op thread starts, for example one of gRPC, has the name of that.
  thread = f"{pool}_intra_op"
  cluster.open(cluster.client, 0, weight, smart_stage=smart_stage, master=cluster.master(0), pool=pool)
  assert cluster.client.steps(count=1) == [0]
  thread_report.assert_pool_threads(thread, 1, worker.pid)
  for other in (cluster.client, cluster.server, cluster.workers[1]):
    thread_report.assert_pool_threads(pool, 0, other.pid)
  _assert_rest(cluster.client.train(), cluster.records()[1:])
  thread_report.assert_pool_threads(thread, 0, worker.pid)


@pytest.mark.parametrize("remote", [False, True], ids=["worker", "client"])
def test_workers_that_train_in_step_compute_the_same_with_and_without_a_stage(cluster, weight, remote):
  """With `SyncReplicasOptimizer`, and the second worker's session in its own process or in that of a client."""
  runs = {}
  for kind, options in _KINDS.items():
    tasks = [cluster.workers[0], cluster.client if remote else cluster.workers[1]]
    for index, task in enumerate(tasks):
      master = cluster.master(index) if task is cluster.client else None
      cluster.open(task, index, f"{weight}_{kind}", synchronous=2, chief=index == 0, master=master, **options)
    steps = []
    for _ in range(_SYNCHRONOUS_STEPS):
      answers = [task.begin("step") for task in tasks]
      steps.append([answer() for answer in answers])
    runs[kind] = steps
    for task in tasks[::-1]:
      task.close()
      test_util.assert_no_stage_thread(task.pid)
  for index in range(2):
    assert [step[index][0] for step in runs["none"]] == cluster.records(index)[:_SYNCHRONOUS_STEPS]
  # The weight changes at each step by the mean of the records.
  assert len({step[0][1] for step in runs["none"][1:]}) == _SYNCHRONOUS_STEPS - 1
  assert runs["staged"] == runs["none"]
  assert runs["smart_stage"] == runs["none"]


@stage_kinds.BOTH
def test_an_error_ahead_of_the_step_reaches_its_worker_only(cluster, weight, smart_stage):
  good, bad = cluster.workers
  cluster.open(good, 0, weight, smart_stage=smart_stage)
  cluster.open(bad, 1, weight, ["7", "8", "nine", "10"], smart_stage=smart_stage, chief=False)
  assert good.steps(count=2) == cluster.records()[:2]
  assert bad.steps(count=2) == [7, 8]
  with pytest.raises(parameter_server_cluster.Failed, match="nine") as raised:
    bad.train()
  assert raised.value.kind == "InvalidArgumentError"
  assert "parse_line" in str(raised.value)
  _assert_rest(good.train(), cluster.records()[2:])


@stage_kinds.BOTH
def test_a_killed_worker_stops_no_other_and_its_successor_starts_over(cluster, weight, smart_stage):
  """While the worker is missing, a session that filters the devices does not wait for it."""
  other = cluster.workers[0]
  for index, worker in enumerate(cluster.workers):
    cluster.open(worker, index, weight, smart_stage=smart_stage, chief=index == 0)
    assert worker.steps(count=3) == cluster.records(index)[:3]
  cluster.workers[1].kill()
  assert other.steps(count=3) == cluster.records()[3:6]
  cluster.open(cluster.client, 0, weight + "_alone", smart_stage=smart_stage, master=cluster.master(0))
  _assert_rest(cluster.client.train(), cluster.records())
  cluster.restart_worker(1)
  cluster.open(cluster.workers[1], 1, weight, smart_stage=smart_stage, chief=False)
  _assert_rest(cluster.workers[1].train(), cluster.records(1))
  _assert_rest(other.train(), cluster.records()[6:])
  assert cluster.server.weight(name=weight) == sum(cluster.records(0) + cluster.records(1) + cluster.records(1)[:3])


def test_a_worker_starts_over_from_its_checkpoint_when_the_parameter_server_is_back(cluster, weight, tmp_path):
  worker = cluster.workers[0]
  cluster.open(worker, 0, weight, smart_stage=True, checkpoints=str(tmp_path))
  assert worker.steps(count=5) == cluster.records()[:5]
  cluster.server.kill()
  answer = worker.begin("train")
  cluster.restart_server()
  _assert_rest(answer(), cluster.records())
  # The checkpoint holds the first four of the five steps.
  assert cluster.server.weight(name=weight) == sum(cluster.records()[:4] + cluster.records())


@stage_kinds.BOTH
def test_a_client_trains_on_the_server_of_another_process(cluster, weight, smart_stage):
  cluster.open(cluster.client, 0, weight, smart_stage=smart_stage, master=cluster.master(0))
  _assert_rest(cluster.client.train(), cluster.records())
  assert cluster.server.weight(name=weight) == sum(cluster.records())
  test_util.assert_no_stage_thread(cluster.client.pid)


@stage_kinds.BOTH
def test_a_plain_session_of_a_client(cluster, weight, smart_stage):
  cluster.open(cluster.client, 0, weight, smart_stage=smart_stage, master=cluster.master(0), plain=True)
  assert cluster.client.devices()["TensorBufferTake"].startswith("/job:worker/replica:0/task:0/")
  assert cluster.client.steps(count=len(cluster.records()) - 1) == cluster.records()[1:]
  with pytest.raises(parameter_server_cluster.Failed, match="OutOfRangeError"):
    cluster.client.steps(count=1)
  cluster.client.close()
  test_util.assert_no_stage_thread(cluster.client.pid)


@stage_kinds.BOTH
def test_an_error_reaches_a_client_after_the_records_before_it(cluster, weight, smart_stage):
  cluster.open(cluster.client, 0, weight, ["7", "8", "nine"], smart_stage=smart_stage, master=cluster.master(0))
  assert cluster.client.steps(count=2) == [7, 8]
  with pytest.raises(parameter_server_cluster.Failed, match="nine") as raised:
    cluster.client.train()
  assert raised.value.kind == "InvalidArgumentError"
  assert "parse_line" in str(raised.value)


@stage_kinds.BOTH
@pytest.mark.parametrize("remote", [False, True], ids=["worker", "client"])
def test_closing_while_a_producer_waits_for_room(cluster, weight, smart_stage, remote):
  task = cluster.client if remote else cluster.workers[0]
  for plain in (False, True):
    options = {"master": cluster.master(0)} if remote else {}
    cluster.open(task, 0, weight, smart_stage=smart_stage, plain=plain, **options)
    assert task.steps(count=1) == [0]
    begin = time.monotonic()
    task.close()
    assert time.monotonic() - begin < _LIMIT_SECONDS
    test_util.assert_no_stage_thread(task.pid)


@stage_kinds.BOTH
def test_the_successor_of_a_killed_client_starts_over(cluster, weight, smart_stage):
  cluster.open(cluster.client, 0, weight, smart_stage=smart_stage, master=cluster.master(0))
  assert cluster.client.steps(count=3) == cluster.records()[:3]
  cluster.client.kill()
  cluster.restart_client()
  cluster.open(cluster.client, 0, weight, smart_stage=smart_stage, master=cluster.master(0))
  _assert_rest(cluster.client.train(), cluster.records())


def test_a_client_starts_over_when_its_server_is_back(cluster, weight):
  cluster.open(cluster.client, 1, weight, smart_stage=True, master=cluster.master(1))
  assert cluster.client.steps(count=3) == cluster.records(1)[:3]
  cluster.workers[1].kill()
  answer = cluster.client.begin("train")
  cluster.restart_worker(1)
  _assert_rest(answer(), cluster.records(1))


def test_a_graph_grows_while_its_stage_is_in_another_process_than_its_master(cluster, weight):
  cluster.open(cluster.client, 1, weight, smart_stage=True, master=cluster.master(0), plain=True)
  assert cluster.client.devices()["TensorBufferTake"].startswith("/job:worker/replica:0/task:1/")
  assert cluster.client.steps(count=2) == cluster.records(1)[1:3]
  assert cluster.client.grow() == [cluster.records(1)[3], 3 * cluster.records(1)[3]]
  assert cluster.client.steps(count=2) == cluster.records(1)[4:6]
  cluster.client.close()


def test_python_feeds_of_a_worker(cluster, weight):
  worker = cluster.workers[1]
  cluster.open(worker, 1, weight, smart_stage=False, python_feeds=True)
  _assert_rest(worker.train(), cluster.records(1))


def test_every_process_ends_by_itself_with_a_session_open(cluster, weight):
  # This test must be the last one, because it ends the processes that the others use.
  cluster.open(cluster.client, 0, weight, smart_stage=False, master=cluster.master(0))
  cluster.open(cluster.workers[1], 1, weight, smart_stage=False, chief=False)
  assert cluster.client.steps(count=1) + cluster.workers[1].steps(count=1) == [0, 1000]
  cluster.end()
