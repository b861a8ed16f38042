# SPDX-License-Identifier: Apache-2.0
"""The backups of a `fit` of several workers, which all go on with the same one.

Each worker reads data of its own, and so has files of its own:

```
  backup_dir/worker-0-of-2/backup-7…
  backup_dir/worker-1-of-2/backup-7…
```

Each commits its backups for itself, and the workers may be killed when some have done that and others have not. So
those of the next `fit` tell each other what they have committed, and go on with the latest of it. All of them have that
backup whole, since none commits a backup before all have written it.
"""

import os
import re
from typing import Any
from typing import Optional

from tensorflow.python.framework import errors
from tensorflow.python.lib.io import file_io

from tensorflow_staging.python.backup import backup_files
from tensorflow_staging.python.backup import worker_group

_FOLDER = "worker-{index}-of-{number}"
_FOLDER_NAME = re.compile(r"worker-\d+-of-(\d+)/?")

_OTHER_NUMBER = (
    "{folder} has the backup of a fit with another number of workers than {number}. Resume with as many, or delete the"
    " backup on each of them.")
_LACKING = (
    "The workers {lacking} lack the backup with which the others go on; that of worker {index} would be {path}. Give"
    " them back their folders, or delete the backup on each worker.")
_NOT_WRITTEN = "The workers {failed} could not write their backups."


def files_of(backup_dir: str, strategy: Any) -> backup_files.BackupFiles:
  """Returns the files of the backups of this process.

  Args:
    backup_dir: The folder for the backups of all workers, or of this process where it is the only one.
    strategy: The strategy of the model.
  """
  group = worker_group.WorkerGroup(strategy)
  return _FilesOfOne(backup_dir) if group.number == 1 else WorkerFiles(backup_dir, group)


def _has_backup_of_others(backup_dir: str, number: int) -> bool:
  """Returns whether a folder has the backup of a fit with another number of workers."""
  names = file_io.list_directory_v2(backup_dir) if file_io.is_directory_v2(backup_dir) else []
  folders = [(1, backup_dir)] + [
      (int(found.group(1)), os.path.join(backup_dir, name))
      for name in names if (found := _FOLDER_NAME.fullmatch(name))]
  return any(of != number and backup_files.BackupFiles(folder).latest() for of, folder in folders)


class _FilesOfOne(backup_files.BackupFiles):
  """The backups of a process that trains alone."""

  def begin(self) -> Optional[str]:
    if _has_backup_of_others(self.folder, number=1):
      raise ValueError(_OTHER_NUMBER.format(folder=self.folder, number=1))
    return super().begin()


class WorkerFiles(backup_files.BackupFiles):
  """The backups of one of several workers. All of them call each method at the same point of the training."""

  def __init__(self, backup_dir: str, group: worker_group.WorkerGroup):
    """Creates an object for the files of this worker.

    Args:
      backup_dir: The folder for those of all workers. It may be on a disk of each.
      group: The workers.
    """
    super().__init__(os.path.join(backup_dir, _FOLDER.format(index=group.index, number=group.number)))
    self._backup_dir = backup_dir
    self._group = group

  def begin(self) -> Optional[str]:
    super().begin()
    # What is wrong for one worker ends the fit of all, so that none waits for another.
    if any(self._group.gather(_has_backup_of_others(self._backup_dir, self._group.number))):
      raise ValueError(_OTHER_NUMBER.format(folder=self._backup_dir, number=self._group.number))
    latest = max(self._group.gather(self.latest_number()))
    if latest == 0:
      return None
    path = self.path_of(latest)
    if lacking := self._where_not(file_io.file_exists_v2(f"{path}.index")):
      raise ValueError(_LACKING.format(lacking=lacking, index=self._group.index, path=path))
    self.pending = path
    self.commit()
    return path

  def write(self, **state: Any) -> None:
    failure = None
    try:
      super().write(**state)
    except (OSError, errors.OpError) as error:
      failure = error
    if failed := self._where_not(failure is None):
      raise RuntimeError(_NOT_WRITTEN.format(failed=failed)) from failure

  def delete(self) -> None:
    self.uncommit()
    # As long as one of them has committed a backup, all need it.
    self._group.gather(0)
    if file_io.is_directory_v2(self.folder):
      file_io.delete_recursively_v2(self.folder)

  def _where_not(self, is_true: bool) -> list[int]:
    """Returns the indices of the workers for which something is not true."""
    return [index for index, value in enumerate(self._group.gather(is_true)) if not value]
