# SPDX-License-Identifier: Apache-2.0
"""Sets restored positions again after a program has initialised its iterators.

A monitored session restores a checkpoint, runs `local_init_op`, and calls its hooks. The second initialises the
iterators that are initialised with the tables. The first hook to be called may save a checkpoint. Another one
initialises the iterators of an Estimator. The hook that starts the stages comes last. A worker that is not the chief
restores its own positions after `local_init_op`.
"""

from collections.abc import Iterable

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.training import session_run_hook

from tensorflow_staging.python.checkpoints import iterator_saveable
from tensorflow_staging.python.checkpoints import worker_checkpoint_hook


def after_session_creation(
    session: session_lib.BaseSession, hooks: Iterable[session_run_hook.SessionRunHook]) -> None:
  """Prepares the iterators of a new monitored session for its first checkpoint.

  Lets hooks restore positions, sets those that the session has restored, and initialises the other iterators
  that are saved, as far as that needs no feeds.

  Args:
    session: The session; no step has run.
    hooks: The hooks that will be called next. If one of them starts the stages, it sets the positions once more.
  """
  hooks = list(hooks)
  for hook in hooks:
    if isinstance(hook, worker_checkpoint_hook.WorkerCheckpointHook):
      hook.restore_positions(session)
  held = _held(session)
  try:
    _set(session, held)
  except errors.FailedPreconditionError:
    # A hook will initialise the iterator. Its position is set when the stages start.
    pass
  for saveable in iterator_saveable.saveables_of(session.graph):
    if saveable not in held and saveable.is_set_at_once() and not _is_initialised(session, saveable):
      session.run(saveable.initializers())
  if not any(getattr(hook, "sets_held_positions", False) for hook in hooks):
    _release(session, held)


def before_stages_start(session: session_lib.BaseSession, *, is_new: bool) -> None:
  """Sets the positions that a session has restored, before its stages start.

  Args:
    session: The session.
    is_new: Whether no step can have run since the restore. Otherwise the positions that the restore
      itself has set stay as they are.

  Raises:
    tf.errors.OpError: If the session cannot run, or a dataset differs from that which was saved.
  """
  held = _held(session)
  _set(session, [saveable for saveable in held if is_new or not saveable.is_set_at_once()])
  _release(session, held)


def _held(session: session_lib.BaseSession) -> list[iterator_saveable.IteratorSaveable]:
  """Returns the saveables whose positions the session holds."""
  saveables = iterator_saveable.saveables_of(session.graph)
  if not saveables:
    return []
  is_held = session.run([saveable.is_held for saveable in saveables])
  return [saveable for saveable, is_one in zip(saveables, is_held) if is_one]


def _set(session: session_lib.BaseSession, saveables: list[iterator_saveable.IteratorSaveable]) -> None:
  # Together, because iterators that share a stage have their records with one of them.
  if saveables:
    session.run([saveable.set_held for saveable in saveables])


def _release(session: session_lib.BaseSession, saveables: list[iterator_saveable.IteratorSaveable]) -> None:
  if saveables:
    session.run([saveable.release for saveable in saveables])


def _is_initialised(
    session: session_lib.BaseSession, saveable: iterator_saveable.IteratorSaveable) -> bool:
  try:
    session.run(saveable.position.op)
  except (errors.FailedPreconditionError, errors.InvalidArgumentError, errors.UnimplementedError) as error:
    # Whether the position can be saved is a question for the first checkpoint.
    return "has not been initialized" not in error.message
  return True
