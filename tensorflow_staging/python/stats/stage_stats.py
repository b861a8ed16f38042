# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.stats`: the statistics of the stages that run in a session."""

import dataclasses
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.training import monitored_session
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.session import stage_lifecycle

_MICRO = 1e-6


@dataclasses.dataclass(frozen=True)
class WaitStats:
  """How long calls waited, in seconds, since the buffer was created.

  Attributes:
    calls: How many calls have succeeded.
    waits: How many of them had to wait.
    total_seconds: How long all of them waited together.
    mean_seconds: How long a call waited on average; 0 if there was none.
    p50_seconds: The time that half of the calls did not exceed, at most 12.5 % off.
    p99_seconds: The time that 99 % of the calls did not exceed, at most 12.5 % off.
  """

  calls: int
  waits: int
  total_seconds: float
  mean_seconds: float
  p50_seconds: float
  p99_seconds: float


@dataclasses.dataclass(frozen=True)
class StageStats:
  """The statistics of one stage, at one moment. Counters began when its buffer was created.

  Attributes:
    name: The name of the stage.
    running: Whether a producer may still add records.
    num_threads: How many producers may.
    capacity: How many records the buffer may hold.
    room: How many it may hold now: `capacity`, or fewer while a buffer of many records fills slowly.
    autotune: Whether the buffer chooses its capacity.
    capacity_bytes: How many bytes the buffer may hold; 0 if there is no bound.
    records: How many records the buffer holds. It held all that were put and not taken or discarded.
    bytes: How many bytes these take, in host memory or in that of the device where the records are.
    put: How many records producers have put.
    taken: How many records steps have taken.
    dropped: How many records were lost because they found no room within `timeout_millis`.
    discarded: How many records a new initialization of their iterator has discarded.
    ignored: How many runs of the region failed with one of `ignored_exception_types`, since the stage
      was last started.
    waiting_puts: How many producers wait for room now.
    waiting_takes: How many steps wait for a record now.
    put_wait: How long producers waited for room.
    take_wait: How long steps waited for records.
    error: The error that a step gets once no record is left, such as "OUT_OF_RANGE: ..." at the end of
      the data; None while the stage goes on.
  """

  name: str
  running: bool
  num_threads: int
  capacity: int
  room: int
  autotune: bool
  capacity_bytes: int
  records: int
  bytes: int
  put: int
  taken: int
  dropped: int
  discarded: int
  ignored: int
  waiting_puts: int
  waiting_takes: int
  put_wait: WaitStats
  take_wait: WaitStats
  error: Optional[str]


@tf_export("staging.stats")
def stats(session: Union[session_lib.BaseSession, monitored_session.MonitoredSession]) -> list[StageStats]:
  """Returns the statistics of the stages that run in a session.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.compat.v1.data.Dataset.range(100)
    record = tf.staged(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next(), capacity=4)
    with tf.compat.v1.Session() as sess, tf.make_prefetch_hook().running(sess):
      for _ in range(10):
        sess.run(record)
      for stage in tf.staging.stats(sess):
        print(f"{stage.name}: {stage.taken} records taken, {stage.records} of {stage.capacity} in the buffer")
  ```

  It takes as long as a run of one op: about 0.1 ms in a local session.

  Args:
    session: A `tf.compat.v1.Session` whose stages `tf.make_prefetch_hook()` runs, or the
      `MonitoredSession` around it.

  Returns:
    A list with a `StageStats` for each stage: a data class with the attributes `name`, `running`,
    `num_threads`, `capacity`, `room`, `autotune`, `capacity_bytes`, `records`, `bytes`, `put`,
    `taken`, `dropped`, `discarded`, `ignored`, `waiting_puts`, `waiting_takes`, `put_wait`,
    `take_wait` and `error`, which its own documentation explains. The list is empty if no stages run in the session.

  Raises:
    TypeError: If `session` is no session.
    tf.errors.UnimplementedError: If the graph was written by a version without statistics.
    tf.errors.OpError: If the session cannot run, for example because its server was lost.
  """
  session = _session_of(session)
  if session is None:
    return []
  return [_stage_stats(runner, buffer) for runner, buffer in stage_lifecycle.stats(session)]


def _session_of(session: Any) -> Optional[session_lib.BaseSession]:
  """Returns the session that does the work; None if a monitored session has been closed."""
  if isinstance(session, monitored_session._MonitoredSession):
    return session._tf_sess() if session._sess is not None else None
  if isinstance(session, session_lib.BaseSession):
    return session
  raise TypeError(
      "session must be a tf.compat.v1.Session or a MonitoredSession, got"
      f" {session!r} of type {type(session).__name__}.")


def _stage_stats(runner: dict[str, Any], buffer: dict[str, Any]) -> StageStats:
  return StageStats(
      name=runner["name"],
      running=runner["running"],
      num_threads=runner["threads"],
      capacity=buffer["capacity"],
      room=buffer["room"],
      autotune=buffer["tunes_capacity"],
      capacity_bytes=buffer["capacity_bytes"],
      records=buffer["records"],
      bytes=buffer["bytes"],
      put=buffer["put"],
      taken=buffer["taken"],
      dropped=buffer["dropped"],
      discarded=buffer["discarded"],
      ignored=runner["ignored"],
      waiting_puts=buffer["waiting_puts"],
      waiting_takes=buffer["waiting_takes"],
      put_wait=_wait_stats(buffer["put_waits"]),
      take_wait=_wait_stats(buffer["take_waits"]),
      error=_error(buffer["error_code"], buffer["error_message"]))


def _wait_stats(waits: dict[str, int]) -> WaitStats:
  total = waits["total_micros"] * _MICRO
  return WaitStats(
      calls=waits["calls"],
      waits=waits["waits"],
      total_seconds=total,
      mean_seconds=total / waits["calls"] if waits["calls"] else 0.0,
      p50_seconds=waits["p50_micros"] * _MICRO,
      p99_seconds=waits["p99_micros"] * _MICRO)


def _error(code: int, message: bytes) -> Optional[str]:
  if code == errors.OK:
    return None
  return f"{error_codes_pb2.Code.Name(code)}: {message.decode(errors='replace')}"
