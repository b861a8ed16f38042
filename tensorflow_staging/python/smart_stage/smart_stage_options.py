# SPDX-License-Identifier: Apache-2.0
"""`tf.SmartStageOptions`: the options of the stages that SmartStage finds."""

import re
from collections.abc import Iterable
from typing import Any
from typing import Optional

from tensorflow.python.framework import ops
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import messages
from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.smart_stage import graph_key
from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import prefetch_options

# The names that tf.name_scope allows for a scope at the root of a graph.
_ROOT_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")


@tf_export("SmartStageOptions")
def SmartStageOptions(
    capacity: int = vocabulary.AUTOTUNE,
    num_threads: int = 1,
    num_clients: int = 1,
    timeout_millis: int = vocabulary.DEFAULT_TIMEOUT_MILLIS,
    closed_exception_types: Optional[Iterable[Any]] = None,
    ignored_exception_types: Optional[Iterable[Any]] = None,
    use_stage_subgraph_thread_pool: bool = False,
    stage_subgraph_thread_pool_id: int = 0,
    stage_subgraph_stream_id: int = 0,
    graph: Optional[ops.Graph] = None,
    name: Optional[str] = None,
    *,
    num_client: Optional[int] = None,
    capacity_bytes: int = 0,
    device_capacity_bytes: int = 0,
    deterministic: bool = True,
    carry_elements: bool = True,
) -> messages.SmartStageOptions:
  """Creates the options of SmartStage, for `ConfigProto.graph_options.optimizer_options`.

  SmartStage finds the part of a graph that can run ahead of the training step, and runs it as
  `tf.staged` would. A session does so if its configuration sets `do_smart_stage`; these options
  are optional. As with `tf.staged`, the session needs `tf.make_prefetch_hook()`.

  For example:

  ```python
  import tensorflow as tf

  config = tf.compat.v1.ConfigProto()
  optimizer_options = config.graph_options.optimizer_options
  optimizer_options.do_smart_stage = True
  optimizer_options.smart_stage_options.CopyFrom(
      tf.SmartStageOptions(capacity=40, num_threads=4))
  ```

  Args:
    capacity: As for `tf.staged`, but the default is `tf.data.AUTOTUNE`; DeepRec's is 1. Beside 1, steps
      took 0.73 to 0.90 times as long where the times of records vary, and about as long elsewhere
      (benchmarks/results.md).
    num_threads: As for `tf.staged`.
    num_clients: As for `tf.staged`.
    timeout_millis: As for `tf.staged`, but at least 1: there is always a limit.
    closed_exception_types: As for `tf.staged`.
    ignored_exception_types: As for `tf.staged`.
    use_stage_subgraph_thread_pool: As for `tf.staged`.
    stage_subgraph_thread_pool_id: As for `tf.staged`.
    stage_subgraph_stream_id: As for `tf.staged`. Creating a session checks that it is less than the
      number of GPU streams.
    graph: The graph that the session will run. Creating a session of another graph with these
      options raises a `ValueError`. None allows any graph.
    name: The name of the stages. None stands for "prefetch". The session adds a number where a graph
      has several stages, or another node has the name.
    num_client: Another spelling of `num_clients`, which some documents use.
    capacity_bytes: As for `tf.staged`.
    device_capacity_bytes: As for `tf.staged`.
    deterministic: As for `tf.staged`.
    carry_elements: Whether each record also carries the elements that its sources yielded, such as the
      serialized examples, so that a step can fetch every tensor that was computed from them. It has
      a reference to each, in host memory. With False, the step can fetch only what it uses. That saves no
      memory while the record waits: its iterator keeps the elements until a step takes the record.

  Returns:
    A `SmartStageOptions` message of `tensorflow.core.protobuf.config_pb2`.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If an argument is out of range, `num_clients` and `num_client` disagree, an entry of
      `closed_exception_types` or `ignored_exception_types` stands for no error of a session, or
      `name` is not a valid name scope.
  """
  argument_checks.check_name(name)
  if name and not _ROOT_SCOPE.fullmatch(name):
    raise ValueError(
        "name must be a name scope that begins with a letter, a digit or '.', and otherwise contains only"
        f" these and _ / \\ > -, got {name!r}.")
  if not isinstance(graph, (ops.Graph, type(None))):
    raise TypeError(
        f"graph must be None or a tf.Graph, got {graph!r} of type {type(graph).__name__}.")
  num_clients = argument_checks.resolve_num_clients(num_clients, num_client)
  options = prefetch_options.PrefetchOptions(
      capacity=capacity,
      capacity_bytes=capacity_bytes,
      device_capacity_bytes=device_capacity_bytes,
      num_threads=num_threads,
      deterministic=deterministic,
      num_clients=num_clients,
      timeout_millis=timeout_millis,
      closed_exception_types=closed_exception_types,
      ignored_exception_types=ignored_exception_types,
      use_stage_subgraph_thread_pool=use_stage_subgraph_thread_pool,
      stage_subgraph_thread_pool_id=stage_subgraph_thread_pool_id,
      stage_subgraph_stream_id=stage_subgraph_stream_id)
  argument_checks.check_bool("carry_elements", carry_elements)
  # The proto3 message does not distinguish 0 from an unset field.
  argument_checks.check_int("timeout_millis", timeout_millis, minimum=1)
  return messages.SmartStageOptions(
      capacity=capacity,
      capacity_bytes=capacity_bytes,
      device_capacity_bytes=device_capacity_bytes,
      num_threads=num_threads,
      num_clients=num_clients,
      timeout_millis=timeout_millis,
      stage_subgraph_stream_id=stage_subgraph_stream_id,
      runner_options=options.runner_options(name or ""),
      graph_key=graph_key.of(graph),
      name=name,
      omit_elements=not carry_elements)
