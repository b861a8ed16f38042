# SPDX-License-Identifier: Apache-2.0
"""A worker that is not the chief saves its positions beside the chief's checkpoints, and goes on from there.

The chief of these tests is a function that writes checkpoints. `killed_cluster_test.py` has a chief, workers and a
parameter server.
"""

import contextlib

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def _chief_saves(folder, step, name="model.ckpt"):
  """Writes a checkpoint, as the chief does."""
  with tf.Graph().as_default(), tf.Session() as sess:
    variable = tf.get_variable("v", initializer=0.0)
    sess.run(variable.initializer)
    tf.train.Saver().save(sess, str(folder / name), global_step=step, write_meta_graph=False)


@contextlib.contextmanager
def _worker(folder, *, smart_stage=True, hook_first=False, elements=1000, **options):
  """Opens the session of worker 1.

  Yields:
    A function that runs steps, up to the end of the data, and returns their records.
  """
  with tf.Graph().as_default():
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(elements))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    record = iterator.get_next() * 1
    if not smart_stage:
      record = tf.staged(record, capacity=5)
    variable = tf.get_variable("v", initializer=tf.zeros([], tf.int64))
    with tf.control_dependencies([tf.assign_add(variable, record)]):
      step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    tf.staging.save_iterators()
    hooks = [tf.make_prefetch_hook(), tf.staging.WorkerCheckpointHook(folder, 1, **{"poll_secs": 0, **options})]
    if hook_first:
      hooks.reverse()
    config = smart_stage_sessions.smart_stage_config(capacity=5) if smart_stage else None
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=config), hooks) as sess:

      def take(count):
        taken = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
          for _ in range(count):
            taken.append(int(sess.run([record, step])[0]))
        return taken

      yield take


class _KilledError(Exception):
  """Ends a worker without the end of its hooks."""


def _killed_after(take, count):
  assert take(count)
  raise _KilledError


def _files(folder):
  return sorted(path.name for path in folder.glob("worker_*.index"))


@pytest.mark.parametrize("smart_stage", [False, True], ids=["staged", "smart_stage"])
@pytest.mark.parametrize("hook_first", [False, True], ids=["stages_first", "hook_first"])
def test_a_killed_worker_goes_on_with_the_record_after_its_file(smart_stage, hook_first, tmp_path):
  _chief_saves(tmp_path, 0)
  with pytest.raises(_KilledError), _worker(tmp_path, smart_stage=smart_stage, hook_first=hook_first) as take:
    assert take(3) == [0, 1, 2]
    _chief_saves(tmp_path, 7)
    assert take(1) == [3]
    _killed_after(take, 5)
  assert _files(tmp_path) == ["worker_1.iterators-7.index"]
  with _worker(tmp_path, smart_stage=smart_stage, hook_first=hook_first) as take:
    assert take(4) == [4, 5, 6, 7]


def test_a_worker_that_ends_goes_on_with_its_next_record(tmp_path):
  _chief_saves(tmp_path, 0)
  with _worker(tmp_path) as take:
    assert take(3) == [0, 1, 2]
  _chief_saves(tmp_path, 3)
  with _worker(tmp_path) as take:
    assert take(3) == [3, 4, 5]


def test_the_chief_goes_back_to_an_older_checkpoint(tmp_path):
  _chief_saves(tmp_path, 0)
  with pytest.raises(_KilledError), _worker(tmp_path) as take:
    for step in (10, 20):
      assert take(2)
      _chief_saves(tmp_path, step)
    _killed_after(take, 2)
  assert _files(tmp_path) == ["worker_1.iterators-10.index", "worker_1.iterators-20.index"]
  _chief_saves(tmp_path, 15)
  with _worker(tmp_path) as take:
    # Saved after the third record.
    assert take(2) == [3, 4]


@pytest.mark.parametrize("chief_saves", [False, True])
def test_a_worker_without_a_file_begins_its_data(chief_saves, tmp_path):
  if chief_saves:
    _chief_saves(tmp_path, 5)
  with _worker(tmp_path) as take:
    assert take(2) == [0, 1]


def test_the_end_of_the_data(tmp_path):
  _chief_saves(tmp_path, 0)
  with _worker(tmp_path, elements=3) as take:
    assert take(5) == [0, 1, 2]
  _chief_saves(tmp_path, 3)
  with _worker(tmp_path, elements=3) as take:
    assert not take(5)


def test_as_many_files_stay_as_the_chief_keeps(tmp_path):
  for _ in range(2):
    with pytest.raises(_KilledError), _worker(tmp_path, max_to_keep=2) as take:
      for step in (10, 20, 30):
        _chief_saves(tmp_path, step)
        assert take(1)
      raise _KilledError
  assert _files(tmp_path) == ["worker_1.iterators-20.index", "worker_1.iterators-30.index"]


def test_the_chiefs_list_of_checkpoints_stays(tmp_path):
  with _worker(tmp_path) as take:
    _chief_saves(tmp_path, 10)
    assert take(1) == [0]
  assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-10")


def test_a_look_costs_no_more_than_it_should(tmp_path):
  _chief_saves(tmp_path, 0)
  with pytest.raises(_KilledError), _worker(tmp_path, poll_secs=1000) as take:
    assert take(1) == [0]
    _chief_saves(tmp_path, 10)
    _killed_after(take, 3)
  assert not _files(tmp_path)


def test_errors(tmp_path):
  with pytest.raises(TypeError, match="task must be an integer, got 'a' of type str"):
    tf.staging.WorkerCheckpointHook(tmp_path, "a")
  with pytest.raises(TypeError, match="poll_secs must be a number, got None of type NoneType"):
    tf.staging.WorkerCheckpointHook(tmp_path, 1, poll_secs=None)
  with pytest.raises(ValueError, match="task and poll_secs must not be negative, got -1 and 1.0"):
    tf.staging.WorkerCheckpointHook(tmp_path, -1)
  with pytest.raises(ValueError, match="checkpoint_dir must be the folder of the chief's checkpoints, got ''"):
    tf.staging.WorkerCheckpointHook("", 1)
  with pytest.raises(ValueError, match="max_to_keep must be positive, got 0"):
    tf.staging.WorkerCheckpointHook(tmp_path, 1, max_to_keep=0)
  hook = tf.staging.WorkerCheckpointHook(tmp_path, 1)
  with tf.Graph().as_default(), pytest.raises(ValueError, match=r"Call tf.staging.save_iterators\(\)"):
    hook.begin()
  with tf.Graph().as_default():
    tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
    tf.staging.save_iterators()
    with pytest.raises(RuntimeError, match="needs a global step"):
      hook.begin()


def test_a_checkpoint_without_a_step(tmp_path):
  _chief_saves(tmp_path, None)
  with pytest.raises(ValueError, match="model.ckpt does not end in a global step"), _worker(tmp_path):
    pass
