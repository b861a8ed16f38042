# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.unstaged`: gives the graph that computes the same without stages, for the official wheel."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

from google.protobuf import message
from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.framework import meta_graph
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import messages
from tensorflow_staging.python.exports import node_names
from tensorflow_staging.python.exports import stageless_nodes
from tensorflow_staging.python.stages import runner_options_collection

_Feeds = Mapping[str, Mapping[str, str]]


@tf_export("staging.unstaged")
def unstaged(
    graph: Union[ops.Graph, graph_pb2.GraphDef, meta_graph_pb2.MetaGraphDef],
    outputs: Optional[Iterable[Any]] = None) -> Union[graph_pb2.GraphDef, meta_graph_pb2.MetaGraphDef]:
  """Returns a graph that computes the same without stages, which the official TensorFlow can run.

  Each region is connected to the step: what a step takes of a stage, it computes by itself. All names remain: of
  every tensor that a step takes, too, so that a signature or a feed may go on using it. Whoever feeds all that a step
  uses of a record computes nothing of the region.

  `tf.compat.v1.saved_model` and `tf.compat.v1.graph_util.convert_variables_to_constants` call this by themselves. A
  checkpoint, and what `tf.compat.v1.train.export_meta_graph` writes, keep the stages.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default() as graph:
    dataset = tf.compat.v1.data.Dataset.range(3)
    record = tf.staged(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next())
    tf.multiply(record, 10, name="tens")
  graph_def = tf.staging.unstaged(graph, ["tens"])

  with tf.Graph().as_default():
    tens, = tf.import_graph_def(graph_def, return_elements=["tens:0"])
    with tf.compat.v1.Session() as sess:
      print(sess.run(tens))  # 0
  ```

  The record of a `tf.prefetch_join` with several sources has to be fed: no step could say which source is next. Without
  a feed, the step raises `tf.errors.InvalidArgumentError`, which names the placeholder.

  Args:
    graph: A `tf.Graph`, a `tf.compat.v1.GraphDef` or a `tf.compat.v1.MetaGraphDef`. It does not change. A `GraphDef`
      does not say what the stages feed (`feed_dict`, `feed_list`): if they feed anything, give one of the others.
    outputs: The names of the tensors or operations to compute, or these themselves. The result has only what they
      need. None keeps all nodes but those that only stages have. It must be None for a `MetaGraphDef`, whose
      collections and signatures refer to nodes.

  Returns:
    A new `GraphDef`, or a `MetaGraphDef` if `graph` is one. It has no op and no attribute of this package. The size of
    a buffer has become 0, and the statistics of a buffer are empty.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If `outputs` name what the graph does not have or what only a stage has; if the graph has a part of a
      stage alone, as after it was frozen or a part of it was cut out; or if it is the graph of a session, which the
      session itself has divided into stages.
  """
  if isinstance(graph, meta_graph_pb2.MetaGraphDef):
    if outputs is not None:
      raise ValueError(
          f"outputs must be None for a MetaGraphDef, got {outputs!r}: give its graph_def to choose what remains.")
    return of_meta_graph(graph)
  if isinstance(graph, ops.Graph):
    definition = graph.as_graph_def()
    feeds = _feeds(graph.get_collection(runner_options_collection.NAME))
  elif isinstance(graph, graph_pb2.GraphDef):
    definition, feeds = graph, {}
  else:
    raise TypeError(
        "graph must be a tf.Graph, a tf.compat.v1.GraphDef or a tf.compat.v1.MetaGraphDef, got"
        f" {graph!r} of type {type(graph).__name__}.")
  names = None if outputs is None else _output_nodes(outputs, definition)
  result = _of_graph_def(definition, feeds)
  return result if names is None else _needed_for(names, result)


def of_meta_graph(meta_graph_def: meta_graph_pb2.MetaGraphDef) -> meta_graph_pb2.MetaGraphDef:
  """Returns a MetaGraphDef without stages: itself, if it has none."""
  graph_def = meta_graph_def.graph_def
  if not _has_stages(graph_def):
    return meta_graph_def
  result = meta_graph_pb2.MetaGraphDef()
  result.CopyFrom(meta_graph_def)
  runners = result.collection_def.pop(runner_options_collection.NAME, None)
  feeds = _feeds(runners.bytes_list.value if runners is not None else ())
  result.graph_def.CopyFrom(_of_graph_def(graph_def, feeds))
  if result.meta_info_def.HasField("stripped_op_list"):
    result.meta_info_def.stripped_op_list.CopyFrom(meta_graph.stripped_op_list_for_graph(result.graph_def))
  return result


def of_session_graph(graph_def: graph_pb2.GraphDef, graph: ops.Graph) -> graph_pb2.GraphDef:
  """Returns a GraphDef without stages: itself, if it has none.

  Args:
    graph_def: The definition of a graph, or of a part of it.
    graph: The graph, whose collection says what the stages feed.
  """
  if not _has_stages(graph_def):
    return graph_def
  return _of_graph_def(graph_def, _feeds(graph.get_collection(runner_options_collection.NAME)))


def _of_graph_def(graph_def, feeds: _Feeds) -> graph_pb2.GraphDef:
  result = graph_pb2.GraphDef()
  result.CopyFrom(graph_def)
  nodes = [_copied(node) for node in result.node]
  del result.node[:]
  result.node.extend(stageless_nodes.without_stages(nodes, feeds))
  for function in result.library.function:
    if stageless_nodes.has_stages(function.node_def):
      _rewrite_function(function)
  return result


def _rewrite_function(function: function_pb2.FunctionDef) -> None:
  nodes = {node.name: _copied(node) for node in function.node_def}
  rewritten = stageless_nodes.without_stages(list(nodes.values()), {}, in_function=True)
  del function.node_def[:]
  function.node_def.extend(rewritten)
  for name, output in list(function.ret.items()):
    function.ret[name] = stageless_nodes.renamed_output(output, nodes)
  left = {node.name for node in rewritten}
  for name, node in list(function.control_ret.items()):
    if node not in left:
      del function.control_ret[name]
      function.signature.control_output.remove(name)


def _copied(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
  copy = node_def_pb2.NodeDef()
  copy.CopyFrom(node)
  return copy


def _has_stages(graph_def: graph_pb2.GraphDef) -> bool:
  bodies = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
  return any(stageless_nodes.has_stages(nodes) for nodes in bodies)


def _feeds(runners: Iterable[bytes]) -> _Feeds:
  try:
    options = [messages.PrefetchRunnerOptions.FromString(runner) for runner in runners]
  except message.DecodeError as error:
    raise ValueError(
        f"The collection {runner_options_collection.NAME!r} has an entry that is no PrefetchRunnerOptions.") from error
  return {stage.name: stage.named_feed_input_tensors for stage in options}


def _output_nodes(outputs: Any, graph_def: graph_pb2.GraphDef) -> list[str]:
  """Returns the names of the nodes that compute the outputs."""
  if isinstance(outputs, (str, bytes, tensor_lib.Tensor, ops.Operation)) or not isinstance(outputs, Iterable):
    raise TypeError(f"outputs must be None or a list of names, tensors or operations, got {outputs!r}.")
  nodes = {node.name: node for node in graph_def.node}
  names = []
  for i, output in enumerate(outputs):
    name = getattr(output, "name", output)
    if not isinstance(name, str):
      raise TypeError(
          f"outputs[{i}] must be the name of a tensor or an operation, or one of these, got {output!r} of type"
          f" {type(output).__name__}.")
    node = nodes.get(node_names.node_of(name))
    if node is None or node_names.is_control(name):
      raise ValueError(f"outputs[{i}] is {name!r}, but the graph has no such node.")
    if stageless_nodes.is_removed(node):
      raise ValueError(
          f"outputs[{i}] is {name!r}, an op of type {node.op}, which a graph without stages does not have.")
    names.append(node.name)
  if not names:
    raise ValueError("outputs must have at least one entry; None keeps all nodes.")
  return names


def _needed_for(names: Sequence[str], graph_def: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
  """Returns the part of a graph that computes nodes."""
  nodes = {node.name: node for node in graph_def.node}
  needed = set(names)
  waiting = list(needed)
  while waiting:
    node = nodes[waiting.pop()]
    before = {node_names.node_of(name) for name in node.input} - needed
    if not before <= nodes.keys():
      raise ValueError(
          f"Node {node.name!r} has inputs from {sorted(before - nodes.keys())}, which the graph does not have.")
    needed |= before
    waiting.extend(before)
  result = graph_pb2.GraphDef()
  result.CopyFrom(graph_def)
  del result.node[:]
  result.node.extend(node for node in graph_def.node if node.name in needed)
  for node in result.node:
    node_names.keep_colocation(node, needed.__contains__)
  return result
