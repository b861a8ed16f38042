# SPDX-License-Identifier: Apache-2.0
"""`tf.staged`: a stage that runs part of the graph ahead of the training step."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import feed_generator as feed_generator_lib
from tensorflow_staging.python.stages import named_feeds
from tensorflow_staging.python.stages import prefetch_options
from tensorflow_staging.python.stages import record_structure
from tensorflow_staging.python.stages import stage_graph


@tf_export("staged")
def staged(
    features: Any,
    feed_dict: Optional[Mapping[Any, Any]] = None,
    capacity: int = vocabulary.DEFAULT_CAPACITY,
    num_threads: int = 1,
    num_clients: int = 1,
    timeout_millis: int = vocabulary.DEFAULT_TIMEOUT_MILLIS,
    closed_exception_types: Optional[Iterable[Any]] = None,
    ignored_exception_types: Optional[Iterable[Any]] = None,
    use_stage_subgraph_thread_pool: bool = False,
    stage_subgraph_thread_pool_id: int = 0,
    stage_subgraph_stream_id: int = 0,
    name: Optional[str] = None,
    *,
    num_client: Optional[int] = None,
    capacity_bytes: int = 0,
    device_capacity_bytes: int = 0,
    deterministic: bool = True,
    feed_list: Optional[Sequence[Any]] = None,
    feed_generator: Optional[Union[Iterable[Any], Callable[..., Iterable[Any]]]] = None,
) -> Any:
  """Computes `features` ahead of the training step that uses them.

  `tf.staged` cuts the graph at `features`. Everything that `features` are computed from becomes a
  region, which runs on background threads and puts one record after another into a bounded buffer.
  A step that uses the returned tensors takes the oldest record, and waits only while the buffer is
  empty. Give the session `tf.make_prefetch_hook()`, which runs the region; without it, the step
  raises `tf.errors.FailedPreconditionError`.

  Each record is taken once, in the order of production. At the
  end of the data, steps take the records that are left in the buffer; after that, a step raises
  `tf.errors.OutOfRangeError`. If the region fails, steps take the records from before the error;
  after that, a step raises the error with its own type and message.

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
    features: The tensors to compute ahead of the step: a tensor, SparseTensor or RaggedTensor, or
      any nesting of lists, tuples, named tuples and dicts of them. Any leaf may be None. A leaf may
      also be a NumPy array, or a Python number or string: each record carries it as a constant,
      which comes back as a tensor of the type that `tf.constant` gives it. Features without a
      tensor, such as `{}` or None, need no stage: none is made, and they come back as they are.
    feed_dict: Maps a placeholder or another tensor to the tensor whose value the region feeds to
      it. The values are computed once for each record.
    capacity: The number of records that the buffer holds, at least 1. About the time of a step
      divided by the time to produce a record is enough. Each record in the buffer costs memory.
      `tf.data.AUTOTUNE` begins with 4 and lets the buffer choose: it grows while it is both full and
      empty by turns and steps wait for records, and shrinks if half of it is never needed.
    num_threads: The number of threads that produce records, from 1 to 4096. They make the records of
      one thread, in the same order, with the same random numbers (see `deterministic`). They read an
      iterator one after the other, so its dataset runs in parallel only by its own settings, such as
      `num_parallel_calls` of `map`. `tf.data.AUTOTUNE` begins with one thread and lets the stage choose.
      While steps wait for records, it adds as many threads as the times of a record and of a step
      demand, and keeps them if records then come faster. There are at most 64, or as many as the
      machine has cores if that is more. The stage takes away threads that are idle.
    num_clients: The number of consumers that take records, at least 1. It only documents the
      intention: any number of consumers may take records at any time.
    timeout_millis: How many milliseconds a finished record waits for room in the buffer. After
      that time the record is dropped, counted and logged. 0 sets no limit.
    closed_exception_types: The errors that mean the end of the data: a list, tuple or set of codes
      such as `tf.errors.OUT_OF_RANGE` and classes such as `tf.errors.OutOfRangeError`. None stands
      for `(tf.errors.OUT_OF_RANGE,)`.
    ignored_exception_types: The errors that skip one record instead of ending the stage, given as
      codes or classes. Each skipped record is counted and logged. None stands for `()`. A type
      that is also in `closed_exception_types` ends the data.
    use_stage_subgraph_thread_pool: Whether to run the region on one of the thread pools that
      `ConfigProto.session_stage_subgraph_thread_pool` configures. Otherwise a region that may call
      Python runs on threads of its own, and any other region on the session's threads, where an
      op that waits inside its thread, for example in your own C++, can hold up the step.
    stage_subgraph_thread_pool_id: The index of that pool. It must be 0 unless
      `use_stage_subgraph_thread_pool` is True.
    stage_subgraph_stream_id: The number of the GPU stream on which to run the region. 0 leaves each
      op on the stream that `tf.stream` gives it, by default stream 0, which is that of the step. A
      session observes the number if its configuration turns on `stage_multi_stream` and
      `use_multi_stream`, and then raises `tf.errors.InvalidArgumentError` if the number is not less
      than `multi_stream_num`.
    name: The name scope of the stage's ops, and the name of the stage in threads, logs and errors.
      None stands for "prefetch", made unique in the graph.
    num_client: Another spelling of `num_clients`, which some documents use.
    capacity_bytes: The number of bytes that the buffer holds in host memory, at least 0. A record counts with the
      elements from which it was made; memory that both have counts once. A record waits for room
      while the buffer holds another record and the sum would exceed it. 0 sets no bound, or 512 MiB
      if `capacity` is `tf.data.AUTOTUNE`.
    device_capacity_bytes: The same for the memory of each GPU to which the stage copies records, or on which it
      computes them.
    deterministic: Whether several threads produce records in the order in which one does, as tf.data's
      parallel `map` does by default. Then one run at a time reads and draws random numbers, and a record
      waits for those before it. `False` lets each record come as soon as it is made, which gains
      something if their times differ a lot. A stage on a server knows no order: there, several threads
      produce records in any order, and `tf.data.AUTOTUNE` stays at one thread unless this is `False`.
    feed_list: A list or tuple of the placeholders, other tensors or SparseTensors that
      `feed_generator` feeds.
    feed_generator: Python code that yields, for each record, a list or tuple of values in the
      order of `feed_list`; the data ends when the code has no further record. It may be a callable,
      which the stage calls each time it starts, without arguments or with the session, and which
      returns an iterable; an iterable, which each start iterates from the beginning; or a generator,
      which each start continues where it is. The threads of the stage share the code and enter it
      one at a time. If the code raises an exception, the step raises the `tf.errors` type to which
      `tf.numpy_function` maps it, with the exception's type name and message. If the values do not
      match `feed_list` in number, type or shape, the step raises `tf.errors.InvalidArgumentError`.

  Returns:
    The features of the taken record, with the structure, types and static shapes of `features`.
    Lists and dicts are new objects of the same type, which the caller may change.

  Raises:
    TypeError: If an argument has the wrong type, a leaf of `features` is none of the above, or a
      leaf of `feed_dict` is not a tensor.
    ValueError: If an argument is out of range; `num_clients` and `num_client` disagree; an entry of
      `closed_exception_types` or `ignored_exception_types` stands for no error of a session;
      `name` is not a valid name scope; a tensor is eager or belongs to another graph; a fed tensor is
      not feedable, is fed twice, or does not match its value in type, static shape or number of
      components; `feed_list` holds a resource or a variant; only
      one of `feed_list` and `feed_generator` is given; or the call is made in eager mode or inside
      a `tf.function`, a tf.data function, `tf.cond` or `tf.while_loop`.
  """
  graph = argument_checks.session_graph("tf.staged")
  argument_checks.check_name(name)
  options = prefetch_options.PrefetchOptions(
      capacity=capacity,
      capacity_bytes=capacity_bytes,
      device_capacity_bytes=device_capacity_bytes,
      num_threads=num_threads,
      deterministic=deterministic,
      num_clients=argument_checks.resolve_num_clients(num_clients, num_client),
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
  if not structure.record:
    return structure.pack([])
  taken = stage_graph.add_stage(
      [structure.record], feeds, options, name, graph, generator_feed)
  return structure.pack(taken)


def _check_fed_once(names: Sequence[str]) -> None:
  """Checks that no tensor is fed twice."""
  repeated = sorted(name for name, count in collections.Counter(names).items() if count > 1)
  if repeated:
    raise ValueError(
        f"feed_list and feed_dict must feed each tensor once, got {repeated} more than once.")
