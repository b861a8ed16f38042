# SPDX-License-Identifier: Apache-2.0
"""`tf.staged`: runs a part of the graph ahead of the training step."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import feed_generator as feed_generator_lib
from tensorflow_staging.python.stages import named_feeds
from tensorflow_staging.python.stages import prefetch_options
from tensorflow_staging.python.stages import record_structure
from tensorflow_staging.python.stages import stage_graph


@tf_export("staged")
def staged(
    features: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    capacity: int = 1,
    num_threads: int = 1,
    num_clients: int = 1,
    timeout_millis: int = prefetch_options.DEFAULT_TIMEOUT_MILLIS,
    closed_exception_types: Iterable[Any] | None = None,
    ignored_exception_types: Iterable[Any] | None = None,
    use_stage_subgraph_thread_pool: bool = False,
    stage_subgraph_thread_pool_id: int = 0,
    stage_subgraph_stream_id: int = 0,
    name: str | None = None,
    *,
    num_client: int | None = None,
    feed_list: Sequence[Any] | None = None,
    feed_generator: Iterable[Any] | Callable[..., Iterable[Any]] | None = None,
) -> Any:
  """Prefetches `features`: they are computed ahead of the step that uses them.

  Everything that `features` are computed from runs in the background, record by record, into a
  buffer. A step that uses the returned tensors takes the oldest record and does not wait for
  input while there is one. The session needs `tf.make_prefetch_hook()`, which does the running.

  Each record is taken once, in the order of production if there is one thread. At the end of the
  data the buffer drains, then a step raises `tf.errors.OutOfRangeError`. An error in the part
  that runs ahead is raised by the step with its own type and message.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.compat.v1.data.Dataset.range(3)
    record = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    record = tf.staged(record * 10, capacity=2)
    hooks = [tf.make_prefetch_hook()]
    with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as sess:
      while not sess.should_stop():
        print(sess.run(record))  # 0, 10, 20
  ```

  Args:
    features: What to compute ahead: a tensor, SparseTensor or RaggedTensor, or any nesting of
      lists, tuples, named tuples and dicts of them. None may stand in any place.
    feed_dict: From a placeholder or another tensor to the tensor whose value is fed to it. The
      values are computed anew for each record.
    capacity: How many records the buffer holds; about the time of a step divided by the time of
      a record is enough. Each one costs its memory.
    num_threads: How many threads produce records. Above 1, their order is not defined.
    num_clients: How many consumers take records. Any number may take at any time, so this only
      documents the intention.
    timeout_millis: How many milliseconds a finished record waits for room in the buffer. After
      that it is dropped, counted and logged. 0 sets no limit.
    closed_exception_types: Error codes such as `tf.errors.OUT_OF_RANGE`, or classes such as
      `tf.errors.OutOfRangeError`, that mean the end of the data. None stands for
      `(tf.errors.OUT_OF_RANGE,)`.
    ignored_exception_types: Codes or classes that skip one record, which is counted and logged.
      None stands for `()`. A type that is also closed ends the stage.
    use_stage_subgraph_thread_pool: Whether to run this part on a thread pool of its own, made by
      `ConfigProto.session_stage_subgraph_thread_pool`.
    stage_subgraph_thread_pool_id: The index of that pool.
    stage_subgraph_stream_id: The index of the GPU stream to run on, where there are several. 0 is
      the stream of the training step.
    name: The name scope of the ops and the name of the stage in threads, logs and errors. None
      stands for "prefetch", made unique.
    num_client: Another spelling of `num_clients`, as some documents have it.
    feed_list: Placeholders, other tensors or SparseTensors that `feed_generator` feeds.
    feed_generator: Python code that yields, for each record, a list or tuple of values in the
      order of `feed_list`; where it ends, the data ends. A callable, called without arguments or
      with the session, returns an iterator anew each time that the stage starts; an iterable is
      iterated anew; a generator that has begun goes on. The threads of the stage share it, and
      enter it one at a time. An exception in it is raised by the step as the error that
      `tf.numpy_function` makes of it, with its type's name and its message.

  Returns:
    `features` as they will be for the step: the same structure, types and static shapes. What was
    a list or a dict is a new one of the same type, which may be changed.

  Raises:
    TypeError: If an argument has the wrong type, or a leaf of `features` or `feed_dict` is no
      tensor.
    ValueError: If an argument is out of range, `features` hold no tensor, a tensor is eager or
      belongs to another graph, a feed does not match, or the call is made in eager mode or inside
      a `tf.function`, `tf.cond` or `tf.while_loop`.
  """
  graph = argument_checks.session_graph("tf.staged")
  argument_checks.check_name(name)
  options = prefetch_options.PrefetchOptions(
      capacity=capacity,
      num_threads=num_threads,
      num_clients=_clients(num_clients, num_client),
      timeout_millis=timeout_millis,
      closed_exception_types=closed_exception_types,
      ignored_exception_types=ignored_exception_types,
      use_stage_subgraph_thread_pool=use_stage_subgraph_thread_pool,
      stage_subgraph_thread_pool_id=stage_subgraph_thread_pool_id,
      stage_subgraph_stream_id=stage_subgraph_stream_id)
  structure = record_structure.RecordStructure("features", features, graph)
  feeds = named_feeds.named_feeds(feed_dict, graph)
  generator_feed = None
  if feed_list is not None or feed_generator is not None:
    generator_feed = feed_generator_lib.GeneratorFeed(feed_list, feed_generator, graph)
    _check_fed_once([*feeds, *generator_feed.names()])
  taken = stage_graph.add_stage(
      [structure.tensors], feeds, options, name, graph, generator_feed)
  return structure.pack(taken)


def _check_fed_once(names: Sequence[str]) -> None:
  """Checks that no tensor is fed from two places."""
  twice = sorted(name for name, count in collections.Counter(names).items() if count > 1)
  if twice:
    raise ValueError(
        f"feed_list and feed_dict must feed each tensor once, got {twice} more than once.")


def _clients(num_clients: int, num_client: int | None) -> int:
  """The number of clients, of which the documents know two spellings."""
  if num_client is None:
    return num_clients
  if num_clients not in (1, num_client):
    raise ValueError(
        "num_client is another spelling of num_clients: give one of them, got"
        f" num_clients={num_clients!r} and num_client={num_client!r}.")
  argument_checks.check_int("num_client", num_client, minimum=1)
  return num_client
