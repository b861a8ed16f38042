# SPDX-License-Identifier: Apache-2.0
"""The options of one stage, which `tf.staged`, `tf.prefetch_join` and `tf.SmartStageOptions` share."""

import dataclasses
from collections.abc import Iterable
from typing import Any
from typing import Optional

from tensorflow.python.framework import errors

from tensorflow_staging.python import api_name
from tensorflow_staging.python import messages
from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import exception_codes


@dataclasses.dataclass(frozen=True)
class PrefetchOptions:
  """The options of one stage, checked on creation.

  Attributes:
    capacity: The number of records that the buffer holds; `tf.data.AUTOTUNE` lets it choose.
    capacity_bytes: The number of bytes that the buffer holds in host memory; 0 sets no bound.
    device_capacity_bytes: The same for the memory of each device.
    num_threads: The number of threads that produce records; `tf.data.AUTOTUNE` lets the runner choose.
    deterministic: Whether several threads produce records in the order in which one does.
    num_clients: The expected number of consumers.
    timeout_millis: How many milliseconds a finished record waits for room; 0 sets no limit.
    closed_exception_types: Codes or classes of the errors that mean the end of the data; None
      stands for `(tf.errors.OUT_OF_RANGE,)`.
    ignored_exception_types: Codes or classes of the errors that skip one record; None stands for
      `()`.
    use_stage_subgraph_thread_pool: Whether the stage runs on a stage thread pool.
    stage_subgraph_thread_pool_id: The index of that pool in
      `ConfigProto.session_stage_subgraph_thread_pool`.
    stage_subgraph_stream_id: The number of the GPU stream of the region; 0 asks for none.
    closed_codes: The status codes of `closed_exception_types`.
    ignored_codes: The status codes of `ignored_exception_types`.

  Raises:
    TypeError: If a value has the wrong type.
    ValueError: If a value is out of range, or `stage_subgraph_thread_pool_id` is not 0 although
      `use_stage_subgraph_thread_pool` is False.
  """

  capacity: int = vocabulary.DEFAULT_CAPACITY
  capacity_bytes: int = 0
  device_capacity_bytes: int = 0
  num_threads: int = 1
  deterministic: bool = True
  num_clients: int = 1
  timeout_millis: int = vocabulary.DEFAULT_TIMEOUT_MILLIS
  closed_exception_types: Optional[Iterable[Any]] = None
  ignored_exception_types: Optional[Iterable[Any]] = None
  use_stage_subgraph_thread_pool: bool = False
  stage_subgraph_thread_pool_id: int = 0
  stage_subgraph_stream_id: int = 0
  closed_codes: tuple[int, ...] = dataclasses.field(init=False)
  ignored_codes: tuple[int, ...] = dataclasses.field(init=False)

  def __post_init__(self):
    argument_checks.check_int("capacity", self.capacity, minimum=1, autotune=True)
    argument_checks.check_int(
        "capacity_bytes", self.capacity_bytes, minimum=0, maximum=argument_checks.INT64_MAX)
    argument_checks.check_int(
        "device_capacity_bytes", self.device_capacity_bytes, minimum=0, maximum=argument_checks.INT64_MAX)
    argument_checks.check_int(
        "num_threads", self.num_threads, minimum=1, maximum=vocabulary.MAX_THREADS, autotune=True)
    argument_checks.check_int("num_clients", self.num_clients, minimum=1)
    for argument in (
        "timeout_millis", "stage_subgraph_thread_pool_id", "stage_subgraph_stream_id"):
      argument_checks.check_int(argument, getattr(self, argument), minimum=0)
    for argument in ("deterministic", "use_stage_subgraph_thread_pool"):
      argument_checks.check_bool(argument, getattr(self, argument))
    if api_name.IS_PLUGIN:
      for argument in ("use_stage_subgraph_thread_pool", "stage_subgraph_stream_id"):
        if value := getattr(self, argument):
          raise ValueError(f"{argument} is {value}, but thread pools and streams of stages are only in the fork.")
    if self.stage_subgraph_thread_pool_id and not self.use_stage_subgraph_thread_pool:
      raise ValueError(
          "stage_subgraph_thread_pool_id must be 0 unless use_stage_subgraph_thread_pool=True,"
          f" got {self.stage_subgraph_thread_pool_id}: the stage would not use that pool.")
    closed = self.closed_exception_types
    if closed is None:
      closed = (errors.OUT_OF_RANGE,)
    ignored = self.ignored_exception_types
    if ignored is None:
      ignored = ()
    # A frozen dataclass can set a field here only through object.__setattr__.
    object.__setattr__(
        self, "closed_codes", exception_codes.exception_codes("closed_exception_types", closed))
    object.__setattr__(
        self, "ignored_codes",
        exception_codes.exception_codes("ignored_exception_types", ignored))

  @property
  def tunes_threads(self) -> bool:
    """Whether the runner chooses the number of threads, beginning with one."""
    return bool(self.num_threads == vocabulary.AUTOTUNE)

  @property
  def is_ordered(self) -> bool:
    """Whether there may be several threads, which keep an order."""
    return self.deterministic and self.num_threads != 1

  def runner_options(self, name: str) -> messages.PrefetchRunnerOptions:
    """Writes these options to the message that configures the stage's runner.

    Args:
      name: The stage's name, for its threads, logs and errors.

    Returns:
      A new message. The caller adds the names of the ops and tensors.
    """
    options = messages.PrefetchRunnerOptions(
        name=name,
        tune_threads=self.tunes_threads,
        any_order=not self.deterministic,
        closed_exceptions=self.closed_codes,
        ignored_exceptions=self.ignored_codes)
    if self.use_stage_subgraph_thread_pool:
      options.run_options.use_stage_subgraph_thread_pool = True
      options.run_options.stage_subgraph_thread_pool_id = self.stage_subgraph_thread_pool_id
    return options
