# SPDX-License-Identifier: Apache-2.0
"""Where a graph keeps the runners of its stages, also while it is exported and imported.

An entry is a serialized PrefetchRunnerOptions, one for each stage. TensorFlow hands the entries to
the functions below when tf.train.export_meta_graph writes a graph and tf.train.import_meta_graph
reads one, with the name scope that it takes away or adds.
"""

from collections.abc import Callable
from collections.abc import Iterator

from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

# The name of the collection.
NAME = "staging_prefetch_runners"

# How the types of all ops begin that look for a buffer, and the attribute by which they do.
_BUFFER_OPS = "TensorBuffer"
_SHARED_NAME = "shared_name"


def to_proto(
    runner: bytes, export_scope: str | None = None) -> config_pb2.PrefetchRunnerOptions | None:
  """Takes a name scope away from the names that a runner knows.

  Args:
    runner: An entry of the graph's collection.
    export_scope: The scope that is exported; None or "" is the whole graph.

  Returns:
    What is to be written; None if the stage is not in the scope. A stage that is partly in it
    cannot run there, which is logged.
  """
  options = config_pb2.PrefetchRunnerOptions.FromString(runner)
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
    options: config_pb2.PrefetchRunnerOptions, import_scope: str | None = None) -> bytes:
  """Adds a name scope to the names that a runner knows, and gives the stage a buffer of its own.

  Args:
    options: What was written.
    import_scope: The scope that the default graph has the stage in; None or "" is the graph
      itself.

  Returns:
    The entry for the graph's collection.

  Raises:
    ValueError: If the graph has a stage of that name already, so that the ops of the two cannot
      be told apart.
  """
  _rename(options, lambda name: ops.prepend_name_scope(name, import_scope))
  graph = ops.get_default_graph()
  for runner in graph.get_collection(NAME):
    if config_pb2.PrefetchRunnerOptions.FromString(runner).cancel_op == options.cancel_op:
      raise ValueError(
          f"The graph has a stage {options.name!r} already, and the two would share a buffer. Give"
          " tf.train.import_meta_graph an import_scope.")
  _name_buffer(graph, options)
  return options.SerializeToString()


def _names(options: config_pb2.PrefetchRunnerOptions) -> Iterator[str]:
  yield from options.fetch_ops
  yield from (options.cancel_op, options.resume_op, options.close_op)
  yield from (options.error_code_tensor, options.error_message_tensor)
  for fed, value in options.named_feed_input_tensors.items():
    yield from (fed, value)


def _rename(options: config_pb2.PrefetchRunnerOptions, rename: Callable[[str], str]) -> None:
  """Renames everything that `_names` tells, and the stage itself."""
  options.name = rename(options.name)
  options.fetch_ops[:] = [rename(name) for name in options.fetch_ops]
  for field in ("cancel_op", "resume_op", "close_op", "error_code_tensor", "error_message_tensor"):
    setattr(options, field, rename(getattr(options, field)))
  feeds = {
      rename(fed): rename(value) for fed, value in options.named_feed_input_tensors.items()
  }
  options.named_feed_input_tensors.clear()
  options.named_feed_input_tensors.update(feeds)


def _name_buffer(graph: ops.Graph, options: config_pb2.PrefetchRunnerOptions) -> None:
  """Names the buffer after the stage, whose name is unique in the graph.

  The ops still have the name that the buffer had in the graph they come from, which another import
  of that graph has, too. A stage has its ops in a name scope of its own, its own name.
  """
  attr = attr_value_pb2.AttrValue(s=options.name.encode())
  for operation in graph.get_operations():
    if (operation.type.startswith(_BUFFER_OPS)
        and operation.name.rpartition("/")[0] == options.name
        and operation.get_attr(_SHARED_NAME) != attr.s):
      operation._set_attr(_SHARED_NAME, attr)


ops.register_proto_function(
    NAME, proto_type=config_pb2.PrefetchRunnerOptions, to_proto=to_proto, from_proto=from_proto)
