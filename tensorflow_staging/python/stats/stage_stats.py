# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.stats`: the statistics of the stages that run in a session."""

from typing import Any
from typing import Optional
from typing import Union

from tensorflow.python.client import session as session_lib
from tensorflow.python.training import monitored_session
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import api_name
from tensorflow_staging.python import uncalled
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import hints
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.stats import counted_stages
from tensorflow_staging.python.stats import why_no_stage

StageStats = counted_stages.StageStats
Stats = counted_stages.Stats
in_all = counted_stages.in_all
stages_of = counted_stages.stages_of


@tf_export("staging.stats")
def stats(
    session: Union[session_lib.BaseSession, monitored_session.MonitoredSession, ahead.AheadStep, Any]) -> Stats:
  """Returns the statistics of the stages that run in a session, of a step of `tf.staging.ahead`, or of a callback.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.compat.v1.data.Dataset.range(100)
    record = tf.staged(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next(), capacity=4)
    with tf.compat.v1.Session() as sess, tf.make_prefetch_hook().running(sess):
      for _ in range(10):
        sess.run(record)
      print(tf.staging.stats(sess))
      for stage in tf.staging.stats(sess):
        print(f"{stage.name}: {stage.taken} records taken, {stage.records} of {stage.capacity} in the buffer")
  ```

  It takes as long as a run of one op: about 0.1 ms in a local session.

  Args:
    session: A `tf.compat.v1.Session` whose stages `tf.make_prefetch_hook()` runs, or the
      `MonitoredSession` around it; or what `tf.staging.ahead` has returned, which has a stage for each iterator; or a
      callback `tf.staging.SmartStage()`: then those of its training and validation, each summed up over the epochs of
      the latest `fit`.

  Returns:
    A list with a `StageStats` for each stage: a data class with the attributes `name`, `running`, `num_threads`,
    `keeps_order`, `capacity`, `room`, `autotune`, `capacity_bytes`, `device_capacity_bytes`, `records`, `bytes`,
    `device_bytes`, `put`, `taken`, `dropped`, `discarded`, `kept_on_host`, `ignored`, `waiting_puts`, `waiting_takes`,
    `put_wait`, `take_wait`, `error`, `capacity_settled`, `tunes_threads`, `threads_settled`, `orders_threads`, `steps`,
    `region`, `cores_busy`, `own_busy` and `gain`, which its own documentation explains. It prints as one line for each
    stage: what it has done, what it gained, and what to do next. The list is empty if no stages run in the session, and
    then prints why.

  Raises:
    TypeError: If `session` is none of these.
    tf.errors.UnimplementedError: If the graph was written by a version without statistics.
    tf.errors.OpError: If the session cannot run, for example because its server was lost.
  """
  of_steps = counted_stages.of_what_has_steps(session)
  if of_steps is not None:
    return of_steps
  session = _session_of(session)
  stages = stages_of(all_sessions.stats(session)) if session is not None else []
  return Stats(stages, without="" if stages else why_no_stage.reason(session))


def _session_of(session: Any) -> Optional[session_lib.BaseSession]:
  """Returns the session that does the work; None if a monitored session has been closed."""
  if isinstance(session, monitored_session._MonitoredSession):
    return session._tf_sess() if session._sess is not None else None
  if isinstance(session, session_lib.BaseSession):
    return session
  uncalled.check(session)
  raise TypeError(
      f"session must be a tf.compat.v1.Session, a MonitoredSession, a step of {api_name.API}.ahead or a callback"
      f" {api_name.API}.SmartStage(), got"
      f" {session!r} of type {type(session).__name__}.{hints.hint_for(session, f'{api_name.API}.stats')}")
