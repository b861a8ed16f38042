# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.WorkerCheckpointHook`: keeps the positions of a worker in its data beside the chief's checkpoints."""

import numbers
import os
import re
import time
from typing import Optional
from typing import Union

from tensorflow.python.checkpoint import checkpoint_management
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging
from tensorflow.python.training import saver as saver_lib
from tensorflow.python.training import session_run_hook
from tensorflow.python.training import training_util
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.checkpoints import iterator_saveable


@tf_export("staging.WorkerCheckpointHook")
class WorkerCheckpointHook(session_run_hook.SessionRunHook):
  """Lets a worker that is not the chief go on with its next element after a restart.

  The chief's checkpoints hold the variables, and what `tf.staging.save_iterators` gave it to save: the
  chief's own positions in the data. With this hook, another worker writes a file of its own beside each
  of these checkpoints, under the same global step: its own positions, and what its stages have read ahead
  and no step has used. A new session of that worker goes on from its last file that is not newer than the chief's last
  checkpoint; without such a file, it begins at the start of its data.

  A worker looks for a new checkpoint after its steps, and so saves a little later than the chief. What it
  takes in between is not taken again if all tasks restart, and the chief's variables do not know it. What it
  takes after its file is taken again.

  For example, in a worker of a cluster:

  ```python
  import tensorflow as tf

  def hooks_of_worker(task, checkpoint_dir):
    tf.staging.save_iterators()
    hooks = [tf.make_prefetch_hook()]
    if task > 0:  # Worker 0 is the chief.
      hooks.append(tf.staging.WorkerCheckpointHook(checkpoint_dir, task))
    return hooks
  ```
  """

  def __init__(
      self,
      checkpoint_dir: Union[str, os.PathLike],
      task: int,
      poll_secs: float = 1.0,
      max_to_keep: int = 5,
  ):
    """Creates the hook.

    Args:
      checkpoint_dir: The folder of the chief's checkpoints, which all workers can read and write.
      task: The number of the worker, which tells its files from those of the others.
      poll_secs: How many seconds lie between two looks for a new checkpoint; 0 looks after each step.
      max_to_keep: How many of its files the worker keeps; give it that of the chief's saver.

    Raises:
      TypeError: If `task` or `max_to_keep` is not an integer, or `poll_secs` not a number.
      ValueError: If `checkpoint_dir` is empty, `task` or `poll_secs` is negative, or `max_to_keep` is not positive.
    """
    if not checkpoint_dir:
      raise ValueError(f"checkpoint_dir must be the folder of the chief's checkpoints, got {checkpoint_dir!r}.")
    for argument, value, kind in (
        ("task", task, numbers.Integral), ("poll_secs", poll_secs, numbers.Real),
        ("max_to_keep", max_to_keep, numbers.Integral)):
      if not isinstance(value, kind) or isinstance(value, bool):
        allowed = "an integer" if kind is numbers.Integral else "a number"
        raise TypeError(f"{argument} must be {allowed}, got {value!r} of type {type(value).__name__}.")
    if task < 0 or poll_secs < 0:
      raise ValueError(f"task and poll_secs must not be negative, got {task!r} and {poll_secs!r}.")
    if max_to_keep <= 0:
      raise ValueError(f"max_to_keep must be positive, got {max_to_keep!r}.")
    self._folder = os.fspath(checkpoint_dir)
    self._prefix = os.path.join(self._folder, f"worker_{task}.iterators")
    # The file that lists those of this worker, as the file `checkpoint` lists those of the chief.
    self._list_name = f"checkpoint_worker_{task}"
    self._poll_secs = poll_secs
    self._max_to_keep = max_to_keep
    self._saver: Optional[saver_lib.Saver] = None
    self._global_step = None
    # The chief's last checkpoint that this worker has seen.
    self._seen: Optional[str] = None
    self._next_look = 0.0

  def begin(self) -> None:
    """Creates the saver.

    Raises:
      ValueError: If `tf.staging.save_iterators` has not been called for the graph.
      RuntimeError: If the graph has no global step.
    """
    saveables = iterator_saveable.saveables_of(ops.get_default_graph())
    if not saveables:
      raise ValueError(
          "tf.staging.WorkerCheckpointHook has nothing to save. Call tf.staging.save_iterators() after creating"
          " the graph's iterators, and before the session.")
    self._global_step = training_util.get_global_step()
    if self._global_step is None:
      raise RuntimeError(
          "tf.staging.WorkerCheckpointHook needs a global step. Call tf.compat.v1.train.get_or_create_global_step().")
    self._saver = saver_lib.Saver(list(saveables), max_to_keep=self._max_to_keep, save_relative_paths=True)

  def restore_positions(self, session: session_lib.BaseSession) -> None:
    """Restores the positions that belong to the chief's last checkpoint.

    A monitored session calls this when it has a new session, before `after_create_session` of any hook.

    Args:
      session: The session.

    Raises:
      ValueError: If the name of the chief's checkpoint does not end in its global step.
      tf.errors.OpError: If the file cannot be read, or does not fit the graph.
    """
    self._seen = checkpoint_management.latest_checkpoint(self._folder)
    if self._seen is None:
      return
    last = _step_of(self._seen)
    state = checkpoint_management.get_checkpoint_state(self._folder, self._list_name)
    listed = state.all_model_checkpoint_paths if state else []
    saved = [path for path in listed if _step_of(path) <= last and checkpoint_management.checkpoint_exists(path)]
    self._saver.recover_last_checkpoints(saved)
    if not saved:
      tf_logging.info(
          "No file of this worker belongs to %s or an earlier checkpoint; it begins at the start of its data.",
          self._seen)
      return
    tf_logging.info("Restoring the positions of this worker from %s.", saved[-1])
    self._saver.restore(session, saved[-1])

  def after_run(self, run_context, run_values):
    del run_values
    now = time.monotonic()
    if now < self._next_look:
      return
    self._next_look = now + self._poll_secs
    latest = checkpoint_management.latest_checkpoint(self._folder)
    if latest is None or latest == self._seen:
      return
    self._save(run_context.session, _step_of(latest))
    self._seen = latest

  def end(self, session):
    # The chief's last checkpoint comes after the last steps of the other workers.
    self._save(session, session.run(self._global_step))

  def _save(self, session: session_lib.BaseSession, step: int) -> None:
    self._saver.save(
        session, self._prefix, global_step=int(step), latest_filename=self._list_name, write_meta_graph=False)


def _step_of(path: str) -> int:
  """Returns the global step of a checkpoint."""
  match = re.search(r"-(\d+)$", path)
  if match is None:
    raise ValueError(
        f"The checkpoint {path} does not end in a global step, such as model.ckpt-100. Give"
        " tf.compat.v1.train.Saver.save its global_step.")
  return int(match[1])
