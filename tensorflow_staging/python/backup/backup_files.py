# SPDX-License-Identifier: Apache-2.0
"""The files of the backups of a `fit`: whenever the process is killed, the latest backup is whole."""

import os
from typing import Any
from typing import Optional

from tensorflow.python.checkpoint import checkpoint as checkpoint_lib
from tensorflow.python.checkpoint import checkpoint_management
from tensorflow.python.lib.io import file_io

_PREFIX = "backup-"
# The file that says which backup is the latest one; its change is one operation of the file system.
_STATE = "checkpoint"


class BackupFiles:
  """The backups in a folder. A new one takes the place of the one before when it is committed.

  Attributes:
    folder: The folder.
    pending: The path of the backup that has been written and not been committed; None if there is none.
  """

  def __init__(self, folder: str):
    self.folder = folder
    self.pending: Optional[str] = None

  def begin(self) -> Optional[str]:
    """Returns the path of the backup with which a `fit` that begins goes on, or None."""
    self.pending = None
    return self.latest()

  def latest(self) -> Optional[str]:
    """Returns the path of the backup that was committed last, or None."""
    return checkpoint_management.latest_checkpoint(self.folder)

  def latest_number(self) -> int:
    """Returns the number of the backup that was committed last, or 0."""
    latest = self.latest()
    return int(latest.rpartition(_PREFIX)[2]) if latest else 0

  def path_of(self, number: int) -> str:
    """Returns the path of the backup with a number."""
    return os.path.join(self.folder, f"{_PREFIX}{number}")

  def write(self, **state: Any) -> None:
    """Writes a backup, which does not count yet. It replaces one that was not committed.

    Args:
      **state: What it has, by name: objects that `tf.train.Checkpoint` can save.
    """
    self._delete_but(self.latest())
    file_io.recursive_create_dir_v2(self.folder)
    self.pending = None
    self.pending = checkpoint_lib.Checkpoint(**state).write(self.path_of(self.latest_number() + 1))

  def commit(self) -> None:
    """Makes the backup that was written last the latest one, if that has not been done."""
    if self.pending is None:
      return
    checkpoint_management.update_checkpoint_state_internal(
        self.folder, self.pending, [self.pending], save_relative_paths=True)
    self._delete_but(self.pending)
    self.pending = None

  def uncommit(self) -> None:
    """Lets none of them be the latest one."""
    self.pending = None
    if file_io.file_exists_v2(state := os.path.join(self.folder, _STATE)):
      file_io.delete_file_v2(state)

  def delete(self) -> None:
    """Deletes all of them."""
    self.uncommit()
    self._delete_but(None)

  def _delete_but(self, path: Optional[str]) -> None:
    """Deletes the files of all backups but one, those included that a killed process has left unfinished."""
    if not file_io.is_directory_v2(self.folder):
      return
    kept = None if path is None else f"{os.path.basename(path)}."
    for name in file_io.list_directory_v2(self.folder):
      name = name.rstrip("/")
      if name.startswith(_PREFIX) and (kept is None or not name.startswith(kept)):
        at = os.path.join(self.folder, name)
        (file_io.delete_recursively_v2 if file_io.is_directory_v2(at) else file_io.delete_file_v2)(at)


def read(path: str, **state: Any) -> None:
  """Restores a part of what a backup has.

  Args:
    path: The backup.
    **state: The part, by the names with which it was written.

  Raises:
    AssertionError: If the backup lacks something of it.
  """
  status = checkpoint_lib.Checkpoint(**state).read(path)
  status.assert_existing_objects_matched()
  status.expect_partial()
