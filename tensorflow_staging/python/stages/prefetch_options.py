# SPDX-License-Identifier: Apache-2.0
"""How one stage runs ahead: the options that `tf.staged` and `tf.SmartStageOptions` share."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import errors

from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import exception_codes

DEFAULT_TIMEOUT_MILLIS = 300000


@dataclasses.dataclass(frozen=True)
class PrefetchOptions:
  """The options of one stage, checked on creation.

  Attributes:
    capacity: How many records the buffer holds.
    num_threads: How many threads produce records.
    num_clients: How many consumers take records.
    timeout_millis: How many milliseconds a finished record waits for room; 0 sets no limit.
    closed_exception_types: Codes or classes that end the stage as the end of the data does; None
      stands for `(tf.errors.OUT_OF_RANGE,)`.
    ignored_exception_types: Codes or classes that skip one record; None stands for `()`.
    use_stage_subgraph_thread_pool: Whether the stage runs on a thread pool of its own.
    stage_subgraph_thread_pool_id: Which one, an index into
      `ConfigProto.session_stage_subgraph_thread_pool`.
    stage_subgraph_stream_id: Which GPU stream the stage runs on; 0 is the training step's.

  Raises:
    TypeError: If a value has the wrong type.
    ValueError: If a value is out of range, or a pool is chosen but not switched on.
  """

  capacity: int = 1
  num_threads: int = 1
  num_clients: int = 1
  timeout_millis: int = DEFAULT_TIMEOUT_MILLIS
  closed_exception_types: Iterable[Any] | None = None
  ignored_exception_types: Iterable[Any] | None = None
  use_stage_subgraph_thread_pool: bool = False
  stage_subgraph_thread_pool_id: int = 0
  stage_subgraph_stream_id: int = 0
  closed_codes: tuple[int, ...] = dataclasses.field(init=False)
  ignored_codes: tuple[int, ...] = dataclasses.field(init=False)

  def __post_init__(self):
    for argument in ("capacity", "num_threads", "num_clients"):
      argument_checks.check_int(argument, getattr(self, argument), minimum=1)
    for argument in (
        "timeout_millis", "stage_subgraph_thread_pool_id", "stage_subgraph_stream_id"):
      argument_checks.check_int(argument, getattr(self, argument), minimum=0)
    argument_checks.check_bool(
        "use_stage_subgraph_thread_pool", self.use_stage_subgraph_thread_pool)
    if self.stage_subgraph_thread_pool_id and not self.use_stage_subgraph_thread_pool:
      raise ValueError(
          "stage_subgraph_thread_pool_id must be 0 unless use_stage_subgraph_thread_pool=True,"
          f" got {self.stage_subgraph_thread_pool_id}: without it the pool would not be used.")
    closed = self.closed_exception_types
    if closed is None:
      closed = (errors.OUT_OF_RANGE,)
    ignored = self.ignored_exception_types
    if ignored is None:
      ignored = ()
    # The dataclass is frozen for its readers; these two are the last step of its creation.
    object.__setattr__(
        self, "closed_codes", exception_codes.exception_codes("closed_exception_types", closed))
    object.__setattr__(
        self, "ignored_codes",
        exception_codes.exception_codes("ignored_exception_types", ignored))

  def runner_options(self, name: str) -> config_pb2.PrefetchRunnerOptions:
    """What the runner needs to know of these options.

    Args:
      name: The stage's name, for its threads, logs and errors.

    Returns:
      A new message; the ops to run are still to be filled in.
    """
    return config_pb2.PrefetchRunnerOptions(
        name=name,
        run_options=config_pb2.RunOptions(
            use_stage_subgraph_thread_pool=self.use_stage_subgraph_thread_pool,
            stage_subgraph_thread_pool_id=self.stage_subgraph_thread_pool_id),
        closed_exceptions=self.closed_codes,
        ignored_exceptions=self.ignored_codes)
