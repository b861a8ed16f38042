# SPDX-License-Identifier: Apache-2.0
"""`tf.prefetch_join`: a stage that puts the records of several sources into one buffer."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import named_feeds
from tensorflow_staging.python.stages import prefetch_options
from tensorflow_staging.python.stages import record_structure
from tensorflow_staging.python.stages import stage_graph


@tf_export("prefetch_join")
def prefetch_join(
    thread_to_features: Sequence[Any],
    feed_dict: Optional[Mapping[Any, Any]] = None,
    capacity: int = vocabulary.DEFAULT_CAPACITY,
    num_clients: int = 1,
    timeout_millis: int = vocabulary.DEFAULT_TIMEOUT_MILLIS,
    closed_exception_types: Optional[Iterable[Any]] = None,
    ignored_exception_types: Optional[Iterable[Any]] = None,
    name: Optional[str] = None,
    *,
    capacity_bytes: int = 0,
    device_capacity_bytes: int = 0,
) -> Any:
  """Computes the records of several sources ahead of the step, with one thread for each source.

  A join is a stage like that of `tf.staged`, except that each entry of `thread_to_features` is a
  source with its own thread. All threads put their records into one buffer, and a step takes one
  record of one source. Records of one source keep their order; the order between sources is not
  defined. The data ends when every source has ended. An error of one source ends the whole stage.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    def source(dataset):
      return tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()

    low = source(tf.compat.v1.data.Dataset.range(0, 2))
    high = source(tf.compat.v1.data.Dataset.range(10, 12))
    record = tf.prefetch_join([{"x": low}, {"x": high}])
    hooks = [tf.make_prefetch_hook()]
    with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as sess:
      while not sess.should_stop():
        print(sess.run(record["x"]))  # 0, 1, 10, 11 in some order
  ```

  Args:
    thread_to_features: A list or tuple with the features of each source, which may be all that
      `tf.staged` accepts. All entries must have the same structure and the same types.
    feed_dict: As for `tf.staged`. All values are computed for each record, whichever source
      produces it; the source is fed those that it uses.
    capacity: As for `tf.staged`.
    num_clients: As for `tf.staged`.
    timeout_millis: As for `tf.staged`.
    closed_exception_types: As for `tf.staged`. One of these errors ends only the source that
      raised it.
    ignored_exception_types: As for `tf.staged`.
    name: As for `tf.staged`.
    capacity_bytes: As for `tf.staged`.
    device_capacity_bytes: As for `tf.staged`.

  Returns:
    The features of the taken record. They have the structure and types of every entry, and the
    most specific static shapes that fit all entries.

  Raises:
    TypeError: If an argument has the wrong type, a leaf is none that `tf.staged` accepts, or entries
      differ in the types of their containers or tensors.
    ValueError: If `thread_to_features` is not a list or tuple of at least one entry, entries
      differ in dtype or nesting, or for any reason given for `tf.staged`.
  """
  graph = argument_checks.session_graph("tf.prefetch_join")
  argument_checks.check_name(name)
  options = prefetch_options.PrefetchOptions(
      capacity=capacity,
      capacity_bytes=capacity_bytes,
      device_capacity_bytes=device_capacity_bytes,
      num_clients=num_clients,
      timeout_millis=timeout_millis,
      closed_exception_types=closed_exception_types,
      ignored_exception_types=ignored_exception_types)
  if not isinstance(thread_to_features, (list, tuple)) or not thread_to_features:
    raise ValueError(
        "thread_to_features must be a list or tuple of at least one source's features, got"
        f" {thread_to_features!r}.")
  structures = [
      record_structure.RecordStructure(f"thread_to_features[{i}]", features, graph)
      for i, features in enumerate(thread_to_features)
  ]
  first = structures[0]
  for i, structure in enumerate(structures):
    _check_types(i, structure, first)
    try:
      first.relax(structure)
    except (TypeError, ValueError) as error:
      raise type(error)(
          f"thread_to_features[{i}] must have the structure of thread_to_features[0]. {error}") from error
  feeds = named_feeds.named_feeds(feed_dict, graph)
  if not first.record:
    return first.pack([])
  taken = stage_graph.add_stage(
      [structure.record for structure in structures], feeds, options, name, graph)
  return first.pack(taken)


def _check_types(
    i: int,
    structure: record_structure.RecordStructure,
    first: record_structure.RecordStructure) -> None:
  """Checks that the records of source `i` have the types of the records of source 0."""
  expected, got = ([component.dtype.base_dtype.name for component in s.record]
                   for s in (first, structure))
  if expected != got:
    raise ValueError(
        f"thread_to_features[{i}] must have the types of thread_to_features[0], {expected}, got"
        f" {got}.")
