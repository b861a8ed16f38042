# SPDX-License-Identifier: Apache-2.0
"""What `tf.staging.stats` says of a stage."""

import dataclasses
from collections.abc import Mapping
from typing import Optional


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
class StepStats:
  """How long steps took, from one record to the next. What came before the first record does not count, nor pauses of
  the program, as for an evaluation.

  Attributes:
    count: How many steps were timed.
    total_seconds: How long all of them took.
    wait_seconds: How much of that they waited for records.
  """

  count: int
  total_seconds: float
  wait_seconds: float


@dataclasses.dataclass(frozen=True)
class RegionStats:
  """How long it took to make records, since the stage was last started.

  Attributes:
    count: How many records were timed: all but the first of each producer.
    total_seconds: How long the region ran for all of them, without the waits for room.
    wait_seconds: How long they waited for room.
  """

  count: int
  total_seconds: float
  wait_seconds: float


@dataclasses.dataclass(frozen=True)
class StageData:
  """The statistics of one stage, at one moment. Counters began when its buffer was created.

  `region` comes from two counters, of producers and of the buffer, which are read one after the other: what ends
  meanwhile, such as a long wait for room, is in the second alone.

  Attributes:
    name: The name of the stage.
    running: Whether a producer may still add records: not at the end of the data.
    num_threads: How many producers may.
    capacity: How many records the buffer may hold: what the program or the stage chose, or what a GPU has memory for.
    room: How many it may hold now: `capacity`, or fewer while a buffer of many records fills slowly.
    autotune: Whether the buffer chooses its capacity.
    capacity_settled: Whether it has settled on one.
    tunes_threads: Whether the stage chooses its number of producers.
    threads_settled: Whether it has settled on one.
    orders_threads: Whether several producers keep the order of the data, too.
    capacity_bytes: How many bytes the buffer may hold in host memory; 0 if there is no bound.
    device_capacity_bytes: How many bytes it may hold in the memory of each device; 0 if there is no bound.
    records: How many records the buffer holds. It held all that were put and not taken or discarded.
    bytes: How many bytes these take, in host memory and in that of the devices to which they have been copied.
    device_bytes: How many of these bytes are in the memory of each device, by names such as "GPU:0". The others are in
      host memory.
    put: How many records producers have put.
    taken: How many records steps have taken.
    dropped: How many records were lost because they found no room within `timeout_millis`.
    discarded: How many records were given up because something else got their elements, an iterator of theirs was
      initialised or restored, or `tf.staging.discard` was called. Their elements come again, unless the iterator has
      got other data.
    kept_on_host: How many records stayed on the host until their step, because a GPU had no memory for them.
    ignored: How many runs of the region failed with one of `ignored_exception_types`, since the stage
      was last started.
    waiting_puts: How many producers wait for room now.
    waiting_takes: How many steps wait for a record now.
    put_wait: How long producers waited for room.
    take_wait: How long steps waited for records.
    steps: How long steps took.
    region: How long it took to make records.
    cores_busy: Which part of the time since the stage was last started the cores were busy, from 0 to 1; None if that
      is unknown.
    own_busy: Which part of that time this process itself kept them busy.
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
  kept_on_host: int = 0
  device_capacity_bytes: int = 0
  device_bytes: Mapping[str, int] = dataclasses.field(default_factory=dict)
  capacity_settled: bool = False
  tunes_threads: bool = False
  threads_settled: bool = False
  orders_threads: bool = True
  steps: StepStats = StepStats(0, 0.0, 0.0)
  region: RegionStats = RegionStats(0, 0.0, 0.0)
  cores_busy: Optional[float] = None
  own_busy: Optional[float] = None

  @property
  def keeps_order(self) -> bool:
    """Whether records come in the order of the data."""
    return self.orders_threads or (self.num_threads <= 1 and not self.tunes_threads)
