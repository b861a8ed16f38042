# SPDX-License-Identifier: Apache-2.0
"""Prepares the iterators of a new monitored session for its first checkpoint.

The first hook to be called may save a checkpoint, which needs the positions of all iterators. Another hook may
initialise them later.
"""

from collections.abc import Iterable

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.training import session_run_hook

from tensorflow_staging.python.checkpoints import iterator_saveable
from tensorflow_staging.python.checkpoints import worker_checkpoint_hook


def prepare(session: session_lib.BaseSession, hooks: Iterable[session_run_hook.SessionRunHook]) -> None:
  """Restores the positions of a worker, and initialises the saved iterators that are not, if that needs no feeds.

  Args:
    session: The session; no step has run.
    hooks: The hooks that will be called next.
  """
  for hook in hooks:
    if isinstance(hook, worker_checkpoint_hook.WorkerCheckpointHook):
      hook.restore_positions(session)
  for saveable in iterator_saveable.saveables_of(session.graph):
    if saveable.can_be_initialised() and not _is_initialised(session, saveable):
      session.run(saveable.initializers())


def _is_initialised(
    session: session_lib.BaseSession, saveable: iterator_saveable.IteratorSaveable) -> bool:
  try:
    session.run(saveable.position.op)
  except (errors.FailedPreconditionError, errors.InvalidArgumentError, errors.UnimplementedError) as error:
    # Whether the position can be saved is a question for the first checkpoint.
    return "has not been initialized" not in error.message
  return True
