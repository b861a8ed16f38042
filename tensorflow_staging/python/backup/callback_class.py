# SPDX-License-Identifier: Apache-2.0
"""The class of the callback that `tf.staging.BackupAndRestore()` returns. Only its use imports Keras."""

import os
from typing import Any
from typing import Optional
from typing import Union

from tensorflow_staging.python.ahead import keras_package
from tensorflow_staging.python.backup import backup_files
from tensorflow_staging.python.backup import fit_data
from tensorflow_staging.python.backup import model_state
from tensorflow_staging.python.backup import position as position_lib
from tensorflow_staging.python.backup import worker_files

EACH_EPOCH = "epoch"

_OTHER_MODEL = (
    "The backup {path} has {had} variables and {metrics_had} variables of metrics, and the model has {has} and"
    " {metrics_has}. Build the model before fit, and compile it as it was, with as many replicas. With"
    " run_eagerly=True, use no metrics.")
_OTHER_SHAPES = (
    "The backup {path} is that of another model. Build the model as it was, or delete the backup. The reason: {error}")
_NO_STEP = (
    "The backup {path} was written after step {step} of epoch {epoch}, and the data of this fit has no further step for"
    " that epoch. Give fit the same data and steps_per_epoch, or delete the backup.")


class BackupAndRestoreCallback(keras_package.callbacks().Callback):
  """See `tf.staging.BackupAndRestore`."""

  def __init__(
      self, backup_dir: Union[str, os.PathLike], save_freq: Union[str, int] = EACH_EPOCH,
      delete_checkpoint: bool = True):
    """Creates the callback; see `tf.staging.BackupAndRestore` for the arguments."""
    super().__init__()
    check_arguments(backup_dir, save_freq, delete_checkpoint)
    self._supports_tf_logs = True
    self.backup_dir = os.fspath(backup_dir)
    self.save_freq = save_freq
    self.delete_checkpoint = delete_checkpoint
    # Of the `fit` that runs.
    self._data: Any = None
    self._files: Any = None
    # The backup with which it goes on, until its first step has ended.
    self._resumed: Optional[str] = None
    self._epoch = 0
    # How many steps of the epoch are done, and how many since the latest backup.
    self._done = 0
    self._since = 0

  def on_train_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
    self._data = fit_data.of_caller()
    self._files = worker_files.files_of(self.backup_dir, getattr(self.model, "distribute_strategy", None))
    self._done, self._since = 0, 0
    self._resumed = self._files.begin()
    if self._resumed is not None:
      self._restore(self._resumed)

  def on_epoch_begin(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
    self._epoch = epoch
    if self._resumed is None:
      self._done = 0
      return
    self._data.note_begun(self.model)
    if not self._done:
      self._resumed = None

  def on_train_batch_end(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None:
    self._resumed = None
    # Now it is known that the epoch did not end with the step of the backup, and so what to resume with.
    self._files.commit()
    self._since += batch + 1 - self._done
    self._done = batch + 1
    if self.save_freq != EACH_EPOCH and self._since >= self.save_freq:
      self._since = 0
      self._write(self._epoch, self._done)

  def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
    if self._resumed is not None:
      # Such a backup counts only once another step has followed.
      raise ValueError(_NO_STEP.format(path=self._resumed, step=self._done, epoch=epoch))
    if self.save_freq == EACH_EPOCH or self._files.pending is not None:
      self._write(epoch + 1, 0)
      self._files.commit()

  def on_train_end(self, logs: Optional[dict[str, Any]] = None) -> None:
    if self.delete_checkpoint:
      self._files.delete()
    self._data = self._files = None

  def _write(self, epoch: int, step: int) -> None:
    state, metrics = model_state.of_model(self.model), model_state.of_metrics(self.model)
    position = position_lib.Position(
        epoch, step, num_variables=len(state.get("variables", ())), num_metrics=len(metrics))
    states = self._data.states_at(position)
    self._files.write(
        position=position, metrics=metrics, replicas=model_state.of_replicas(self.model), **state, **states)

  def _restore(self, path: str) -> None:
    """Restores the model, and lets the `fit`, which begins, go on where the backup was written."""
    position = position_lib.Position()
    backup_files.read(path, position=position)
    model_state.build(self.model, self._data.new_iterator)
    state, metrics = model_state.of_model(self.model), model_state.of_metrics(self.model)
    had = position.num_variables, position.num_metrics
    has = len(state.get("variables", ())), len(metrics)
    if had != has:
      raise ValueError(
          _OTHER_MODEL.format(path=path, had=had[0], metrics_had=had[1], has=has[0], metrics_has=has[1]))
    self._read_model(path)
    states = self._data.new_states()
    backup_files.read(path, **states)
    self._done = position.step
    self._data.resume(self.model, position, states, self._restore_within_epoch)

  def _restore_within_epoch(self) -> None:
    """Restores the model once more: before the first step, and after all that begins its epoch for the second time.

    Keras has set its metrics back, and another callback may have lowered the learning rate again.
    """
    self._read_model(self._resumed)
    backup_files.read(self._resumed, metrics=model_state.of_metrics(self.model))

  def _read_model(self, path: str) -> None:
    try:
      backup_files.read(path, **model_state.of_model(self.model))
      backup_files.read(path, replicas=model_state.of_replicas(self.model))
    except (AssertionError, ValueError) as error:
      raise ValueError(_OTHER_SHAPES.format(path=path, error=error)) from error


def check_arguments(backup_dir: Any, save_freq: Any, delete_checkpoint: Any) -> None:
  """Raises an error if an argument of `tf.staging.BackupAndRestore` has the wrong type or is out of range."""
  if not isinstance(backup_dir, (str, os.PathLike)):
    raise TypeError(f"backup_dir must be a path, got {backup_dir!r} of type {type(backup_dir).__name__}.")
  if not os.fspath(backup_dir):
    raise ValueError("backup_dir must not be empty.")
  is_count = isinstance(save_freq, int) and not isinstance(save_freq, bool)
  if not is_count and save_freq != EACH_EPOCH:
    raise TypeError(f"save_freq must be 'epoch' or an integer, got {save_freq!r} of type {type(save_freq).__name__}.")
  if is_count and save_freq < 1:
    raise ValueError(f"save_freq must be at least 1, got {save_freq}.")
  if not isinstance(delete_checkpoint, bool):
    raise TypeError(
        f"delete_checkpoint must be a bool, got {delete_checkpoint!r} of type {type(delete_checkpoint).__name__}.")
