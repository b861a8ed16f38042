# SPDX-License-Identifier: Apache-2.0
"""`tf.make_prefetch_hook`: creates the hook that runs the stages of a graph while a session is open."""

import contextlib
from collections.abc import Iterator
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.training import coordinator
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import uncalled
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.session import step_hooks
from tensorflow_staging.python.session import watched_runs
from tensorflow_staging.python.stats import ended_sessions


class PrefetchRunnerHook(step_hooks.IdleHook):
  """Runs the stages of a session's graph; `tf.make_prefetch_hook()` creates it.

  The hook keeps no state of a session. One object serves any number of sessions, one after the
  other or at the same time.
  """

  def after_create_session(
      self,
      session: session_lib.BaseSession,
      coord: Optional[coordinator.Coordinator] = None) -> None:
    """Starts every stage of the session's graph, unless they are running already.

    Monitored sessions and Estimators call this method. A program with a plain
    `tf.compat.v1.Session` may call it directly, or use `running`.

    Args:
      session: The session to run the stages in.
      coord: If given, the stages stop when the coordinator is asked to stop, and `coord.join` waits
        until they have stopped.

    Raises:
      TypeError: If an argument has the wrong type.
      tf.errors.CancelledError: If another thread ends the hook before the stages have started.
      tf.errors.OpError: If the session cannot run the stages, for example because it is closed.
    """
    all_sessions.start(session, coord)
    # The hook has them now, whoever was to start them.
    watched_runs.unwatch(session)

  def start_early(self, session: session_lib.BaseSession) -> None:
    """Starts the stages for a run that needs a record while a monitored session is being created.

    `after_create_session`, which the session calls later, then gives them its coordinator.

    Args:
      session: The session.

    Raises:
      tf.errors.OpError: If the session cannot run the stages.
    """
    all_sessions.start(session)

  def end(self, session: Optional[session_lib.BaseSession]) -> None:
    """Stops the stages of a session, and waits until their threads have left it.

    Then logs what each has done and gained, with the level INFO.

    Waits only a few seconds for a thread that slow input blocks; that thread ends when the session
    closes. Waits no longer for a server that does not answer, and not at all for another thread that is
    starting the stages.

    Args:
      session: The session, or None if it no longer exists.
    """
    if session is not None and all_sessions.end(session):
      ended_sessions.log(session)

  @contextlib.contextmanager
  def running(
      self, session: session_lib.BaseSession) -> Iterator[session_lib.BaseSession]:
    """Runs the stages inside a `with` block, for a plain session.

    Blocks of one session may be nested, or be in several threads: the end of the last one stops the stages, also
    those that ran before it.

    ```python
    import tensorflow as tf

    with tf.Graph().as_default():
      record = tf.staged(tf.random.uniform([2]))
      with tf.compat.v1.Session() as sess, tf.make_prefetch_hook().running(sess):
        print(sess.run(record))
    ```

    Args:
      session: The session to run the stages in.

    Yields:
      The session.

    Raises:
      TypeError: If `session` is not a `tf.compat.v1.Session`.
      tf.errors.OpError: If the session cannot run the stages, for example because it is closed.
    """
    all_sessions.enter_block(session)
    try:
      self.after_create_session(session)
      yield session
    finally:
      if all_sessions.leave_block(session):
        ended_sessions.log(session)


@tf_export("make_prefetch_hook")
def make_prefetch_hook(
    daemon: Optional[bool] = None, start: Optional[bool] = None) -> PrefetchRunnerHook:
  """Creates the hook that runs the stages of a graph, those of `tf.staged` and those of SmartStage.

  The stages start when the session is created. They stop when the hook ends, when the coordinator of
  the session stops or when the session closes, whichever comes first. Without the hook, a step that
  uses staged tensors fails with `tf.errors.FailedPreconditionError` after 5 seconds.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    record = tf.staged(tf.random.uniform([2]))
    hooks = [tf.make_prefetch_hook()]
    with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as sess:
      print(sess.run(record))
  ```

  A monitored session ends its hooks in the order of their list. A hook whose end needs a record, such as
  `tf.compat.v1.train.FinalOpsHook` with a loss, therefore goes before this one.

  A plain session uses the hook as a context manager:
  `with tf.make_prefetch_hook().running(sess):`.

  Args:
    daemon: Has no effect; accepted because older documentation uses it. No thread of a stage keeps
      the program alive.
    start: Has no effect; accepted because older documentation uses it. The stages always start with
      the session.

  Returns:
    A `tf.compat.v1.train.SessionRunHook`, which may serve several sessions.
  """
  del daemon, start
  return PrefetchRunnerHook()


uncalled.refuse_methods(make_prefetch_hook, "tf.make_prefetch_hook", ("begin", "after_create_session", "running"))
