# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.discard`: lets stages make again what they have prepared."""

from typing import Optional
from typing import Union

from tensorflow.python.client import session as session_lib
from tensorflow.python.training import monitored_session
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import messages
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.session import needed_runners
from tensorflow_staging.python.session import stage_chains


@tf_export("staging.discard")
def discard(
    session: Union[session_lib.BaseSession, monitored_session.MonitoredSession],
    stage: Optional[str] = None) -> int:
  """Lets the stages of a session make again the records that wait, and those that they are making.

  They make them from the same elements, with the state that holds after the call. A stage whose region reads something
  that the program changes, such as a variable or a table, needs this after the change. An iterator that is initialised
  or restored does it by itself.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    scale = tf.compat.v1.get_variable("scale", initializer=1)
    record = tf.staged(scale * 10, capacity=4)
    change = scale.assign(2)
    with tf.compat.v1.Session() as sess:
      sess.run(scale.initializer)
      with tf.make_prefetch_hook().running(sess):
        print(sess.run(record))  # 10
        sess.run(change)
        tf.staging.discard(sess)
        print(sess.run(record))  # 20
  ```

  No element of an iterator is lost. Records that were made from no iterator, such as those of a queue, are dropped: the
  next step gets what comes after the call.

  Args:
    session: A `tf.compat.v1.Session`, or the `MonitoredSession` around it. Its stages may run or not.
    stage: The name of a stage, as in `tf.staging.stats`. Without it, all stages of the session.

  Returns:
    How many records waited. `tf.staging.stats` counts as `discarded` these and those that were being made.

  Raises:
    TypeError: If `session` is no session.
    ValueError: If `session` is closed, or has no stage of that name.
    tf.errors.OpError: If the session cannot run, for example because its server was lost.
  """
  session = _session_of(session)
  session._extend_graph()
  stages = {}
  for serialized in needed_runners.of_session(session):
    options = messages.PrefetchRunnerOptions.FromString(serialized)
    if options.discard_tensor:
      stages[options.name] = options.discard_tensor
  if stage is not None and stage not in stages:
    raise ValueError(f"The session has no stage {stage!r}; its stages are {sorted(stages)}.")
  names = [stage] if stage is not None else _in_order(list(stages), stage_chains.stages_before(session))
  return sum(_pywrap_staging.fetch_counts(session._session, [stages[name] for name in names]))


def _in_order(names: list[str], before: dict[str, set[str]]) -> list[str]:
  """Sorts stages so that each comes after those whose records it takes.

  A run of a later stage may have taken an old record of an earlier one. It is stale if the later stage comes after.
  """
  ordered = []

  def add(name: str) -> None:
    if name in names and name not in ordered:
      for earlier in sorted(before.get(name, ())):
        add(earlier)
      ordered.append(name)

  for name in names:
    add(name)
  return ordered


def _session_of(
    session: Union[session_lib.BaseSession, monitored_session.MonitoredSession]) -> session_lib.BaseSession:
  if isinstance(session, monitored_session._MonitoredSession):
    if session._sess is None:
      raise ValueError("session is closed.")
    session = session._tf_sess()
  if not isinstance(session, session_lib.BaseSession):
    raise TypeError(
        f"session must be a tf.compat.v1.Session or a MonitoredSession, got {session!r} of type"
        f" {type(session).__name__}.")
  if session._closed:
    raise ValueError("session is closed.")
  return session
