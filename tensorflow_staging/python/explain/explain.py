# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.explain`: which part of a graph runs ahead of the training step, and why not more."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor_shape
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_report
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.session import runner_options
from tensorflow_staging.python.smart_stage import graph_key


@tf_export("staging.explain")
def explain(
    graph: ops.Graph | None = None,
    config: config_pb2.ConfigProto | None = None) -> explain_report.StageReport:
  """Tells which nodes SmartStage runs ahead of the training step, and why it leaves the others.

  Nothing is changed and no session is needed. If `config` has SmartStage off, the report is about
  a session that had it on, and says so.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default() as graph:
    dataset = tf.compat.v1.data.Dataset.range(3).batch(2)
    record = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    weights = tf.compat.v1.get_variable("weights", [10])
    tf.gather(weights, record % 10)
    report = tf.staging.explain(graph)
    print(report)
    print(report.stages[0].boundary)
    # With Graphviz: report.save_svg("stages.svg")
  ```

  Args:
    graph: The graph that a session will run; None stands for the default graph.
    config: The configuration of the session, a `tf.compat.v1.ConfigProto`; None stands for one
      that says nothing.

  Returns:
    A report with the fields `enabled`, `num_nodes`, `stages` (of each the name, the sources, the
    nodes, the boundary and the first nodes outside), `unstaged_sources` and `reasons`. As a
    string it is readable text; `to_dot()` and `save_svg(path)` make a picture.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If no graph is given in eager mode, or the options are those of another graph.
    tf.errors.InvalidArgumentError: If a session with `config` would be refused.
  """
  if not isinstance(graph, ops.Graph | None):
    raise TypeError(
        f"graph must be None or a tf.Graph, got {graph!r} of type {type(graph).__name__}.")
  if not isinstance(config, config_pb2.ConfigProto | None):
    raise TypeError(
        f"config must be None or a tf.compat.v1.ConfigProto, got {config!r} of type"
        f" {type(config).__name__}.")
  if graph is None and context.executing_eagerly():
    raise ValueError(
        "tf.staging.explain explains a graph that a session runs, but eager execution is on. Give"
        " it the graph: tf.staging.explain(graph).")
  graph = graph or ops.get_default_graph()
  config = config or config_pb2.ConfigProto()
  enabled = config.graph_options.optimizer_options.do_smart_stage
  if enabled:
    graph_key.check(graph, config)
  found = _pywrap_staging.stage_report(
      runner_options.serialized_graph(graph), config.SerializeToString())
  return explain_report.StageReport(
      enabled=enabled,
      num_nodes=len(found["nodes"]),
      stages=tuple(_stage(**stage) for stage in found["stages"]),
      unstaged_sources=_outside(found["unstaged_sources"]),
      reasons=tuple(
          explain_report.Reason(nodes=count, example=explain_report.OutsideNode(*example))
          for count, example in found["reasons"]),
      graph=explain_graph.StagedGraph(nodes=tuple(found["nodes"]), edges=tuple(found["edges"])))


def _stage(name, by_hand, sources, nodes, boundary, outside) -> explain_report.Stage:
  return explain_report.Stage(
      name=name,
      by_hand=by_hand,
      sources=tuple(sources),
      nodes=tuple(nodes),
      boundary=tuple(
          explain_report.BoundaryTensor(tensor, dtypes.as_dtype(dtype), _shape(dims))
          for tensor, dtype, dims in boundary),
      outside=_outside(outside))


def _shape(dims: list[int] | None) -> tensor_shape.TensorShape:
  return tensor_shape.TensorShape(
      None if dims is None else [None if dim < 0 else dim for dim in dims])


def _outside(nodes: list[tuple[str, str, str]]) -> tuple[explain_report.OutsideNode, ...]:
  return tuple(explain_report.OutsideNode(*node) for node in nodes)
