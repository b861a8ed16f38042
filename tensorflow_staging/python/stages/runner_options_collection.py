# SPDX-License-Identifier: Apache-2.0
"""The graph collection that holds the runner options of the graph's stages, and its export and import.

The collection has one entry for each stage: a serialized PrefetchRunnerOptions. When
tf.train.export_meta_graph writes a graph or tf.train.import_meta_graph reads one, TensorFlow calls
the functions below with each entry and the name scope that it strips or prepends.
"""

from collections.abc import Callable
from collections.abc import Iterator
from typing import Optional

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python import messages
from tensorflow_staging.python import vocabulary

# The name of the collection.
NAME = "staging_prefetch_runners"


def to_proto(
    runner: bytes, export_scope: Optional[str] = None) -> Optional[messages.PrefetchRunnerOptions]:
  """Strips a name scope from all names in the options of a runner.

  Args:
    runner: An entry of the graph's collection.
    export_scope: The scope that is exported; None or "" is the whole graph.

  Returns:
    The message to export, or None if the stage is not wholly inside the scope. A stage that is
    only partly inside could not run in the exported graph; this is logged.
  """
  options = messages.PrefetchRunnerOptions.FromString(runner)
  if not export_scope:
    return options
  inside = [name.startswith(f"{export_scope.rstrip('/')}/") for name in _names(options)]
  if not all(inside):
    if any(inside):
      tf_logging.warning(
          "Stage %r is exported without its runner: some of its ops are outside of %r.",
          options.name, export_scope)
    return None
  _rename(options, lambda name: ops.strip_name_scope(name, export_scope))
  return options


def from_proto(
    options: messages.PrefetchRunnerOptions, import_scope: Optional[str] = None) -> bytes:
  """Prepends a name scope to all names in the options of a runner, and renames the stage's buffer.

  Args:
    options: The exported message.
    import_scope: The scope of the default graph into which the stage was imported; None or ""
      means the root of the graph.

  Returns:
    The entry for the graph's collection.

  Raises:
    ValueError: If the default graph already has a stage of this name. The ops of the two stages
      could not be told apart.
  """
  _rename(options, lambda name: ops.prepend_name_scope(name, import_scope))
  graph = ops.get_default_graph()
  for runner in graph.get_collection(NAME):
    if messages.PrefetchRunnerOptions.FromString(runner).cancel_op == options.cancel_op:
      raise ValueError(
          f"The graph has a stage {options.name!r} already, and the two stages would share a"
          " buffer. Pass an unused import_scope to tf.train.import_meta_graph.")
  _name_buffer(graph, options)
  return options.SerializeToString()


def _names(options: messages.PrefetchRunnerOptions) -> Iterator[str]:
  """Yields the names of all ops and tensors that the options refer to."""
  yield from options.fetch_ops
  yield from (options.cancel_op, options.resume_op, options.close_op)
  yield from (options.error_code_tensor, options.error_message_tensor)
  # Both are optional.
  yield from filter(None, (options.stats_tensor, options.discard_tensor))
  for fed, value in options.named_feed_input_tensors.items():
    yield from (fed, value)


def _rename(options: messages.PrefetchRunnerOptions, rename: Callable[[str], str]) -> None:
  """Renames the stage and everything that `_names` yields."""
  options.name = rename(options.name)
  options.fetch_ops[:] = [rename(name) for name in options.fetch_ops]
  for field in ("cancel_op", "resume_op", "close_op", "error_code_tensor", "error_message_tensor", "stats_tensor",
                "discard_tensor"):
    name = getattr(options, field)
    setattr(options, field, rename(name) if name else name)
  feeds = {
      rename(fed): rename(value) for fed, value in options.named_feed_input_tensors.items()
  }
  options.named_feed_input_tensors.clear()
  options.named_feed_input_tensors.update(feeds)


def _name_buffer(graph: ops.Graph, options: messages.PrefetchRunnerOptions) -> None:
  """Names the stage's buffer after the stage, whose name is unique in the graph.

  Imported ops still carry the buffer's name from the exported graph, and so would the ops of a
  second import. The ops of a stage are found by their name scope, which is the stage's name.
  """
  attr = attr_value_pb2.AttrValue(s=options.name.encode())
  for operation in graph.get_operations():
    if (operation.type in vocabulary.BUFFER_OPS
        and operation.name.rpartition("/")[0] == options.name
        and operation.get_attr(vocabulary.SHARED_NAME_ATTR) != attr.s):
      operation._set_attr(vocabulary.SHARED_NAME_ATTR, attr)


ops.register_proto_function(
    NAME, proto_type=messages.PrefetchRunnerOptions, to_proto=to_proto, from_proto=from_proto)
