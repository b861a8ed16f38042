# SPDX-License-Identifier: Apache-2.0
"""`tf.prefetch_join`: several parts of the graph run ahead into one buffer."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import named_feeds
from tensorflow_staging.python.stages import prefetch_options
from tensorflow_staging.python.stages import record_structure
from tensorflow_staging.python.stages import stage_graph


@tf_export("prefetch_join")
def prefetch_join(
    thread_to_features: Sequence[Any],
    feed_dict: Mapping[Any, Any] | None = None,
    capacity: int = 1,
    num_clients: int = 1,
    timeout_millis: int = prefetch_options.DEFAULT_TIMEOUT_MILLIS,
    closed_exception_types: Iterable[Any] | None = None,
    ignored_exception_types: Iterable[Any] | None = None,
    name: str | None = None,
) -> Any:
  """Prefetches records of several sources into one buffer, with one thread for each source.

  As `tf.staged`, which see, but each entry of `thread_to_features` is computed by a thread of its
  own. Records of one source keep their order; between sources there is none. The data ends when
  every source has ended.

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
    thread_to_features: A list or tuple with the features of each source, of one structure and of
      the same types.
    feed_dict: As for `tf.staged`; a source is fed what it uses.
    capacity: As for `tf.staged`.
    num_clients: As for `tf.staged`.
    timeout_millis: As for `tf.staged`.
    closed_exception_types: As for `tf.staged`; one source ends by itself.
    ignored_exception_types: As for `tf.staged`.
    name: As for `tf.staged`.

  Returns:
    Features of the structure and types of each entry, and of the static shapes that all entries
    have in common.

  Raises:
    TypeError: If an argument has the wrong type, entries differ in structure, or a leaf is no
      tensor.
    ValueError: If there is no entry, entries differ in types or in structure, or for a reason
      that `tf.staged` names.
  """
  graph = argument_checks.session_graph("tf.prefetch_join")
  argument_checks.check_name(name)
  options = prefetch_options.PrefetchOptions(
      capacity=capacity,
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
    first.relax(structure)
  feeds = named_feeds.named_feeds(feed_dict, graph)
  taken = stage_graph.add_stage(
      [structure.tensors for structure in structures], feeds, options, name, graph)
  return first.pack(taken)


def _check_types(
    i: int,
    structure: record_structure.RecordStructure,
    first: record_structure.RecordStructure) -> None:
  """Checks that source `i` makes records of the types of source 0."""
  expected, got = ([tensor.dtype.base_dtype.name for tensor in s.tensors]
                   for s in (first, structure))
  if expected != got:
    raise ValueError(
        f"thread_to_features[{i}] must have the types of thread_to_features[0], {expected}, got"
        f" {got}.")
