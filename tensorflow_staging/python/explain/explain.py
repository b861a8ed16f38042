# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.explain`: reports which part of a graph runs ahead of the training step, and why the rest does not."""

from typing import Any
from typing import Optional
from typing import Union

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager import context
from tensorflow.python.framework import c_api_util
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor_shape
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import uncalled
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import hints
from tensorflow_staging.python.ahead import keras_callback
from tensorflow_staging.python.ahead import step_report
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_report
from tensorflow_staging.python.explain import limiting_nodes
from tensorflow_staging.python.explain import record_parts
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.session import needed_runners
from tensorflow_staging.python.smart_stage import graph_key
from tensorflow_staging.python.smart_stage import optimizer_options


@tf_export("staging.explain")
def explain(
    graph: Union[ops.Graph, ahead.AheadStep, Any, None] = None,
    config: Optional[config_pb2.ConfigProto] = None) -> Union[explain_report.StageReport, step_report.StepReport]:
  """Reports which nodes SmartStage runs ahead of the training step, and why the others stay in it.

  The call changes nothing and needs no session. If SmartStage is off in `config`, the report
  describes what SmartStage would do if it were on, and says so. With `do_async_embedding`, it
  describes what a session with exactly this configuration does.

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
    # For a browser: report.save_html("stages.html")
    # With Graphviz: report.save_svg("stages.svg")
  ```

  Args:
    graph: The graph that a session will run. None means the default graph. Or a step of `tf.staging.ahead` that has
      been called, or a callback `tf.staging.SmartStage()` that has been used.
    config: The configuration of the session, a `tf.compat.v1.ConfigProto`. None means the default
      configuration. The environment variable `TF_STAGING_SMART_STAGE` counts as for a session.

  Returns:
    A report with the fields `enabled`, `async_embedding`, `num_nodes`, `stages` (each with its name,
    its sources, its nodes, its boundary, the elements that it keeps, in which memory these wait for the step, the first
    nodes outside it and, for lookups ahead of the step, the variables and how many updates they may miss),
    `unstaged_sources`, `reasons`, `advice` and `notes`.
    `str(report)` is readable text; `report.to_html()` and `report.save_html(path)` make a page for a
    browser; `report.to_dot()` and `report.save_svg(path)` draw a picture.
    For a step or a callback, a report with the field `steps`: for each trace its name, `why_not`, its nodes, its
    boundary, where that waits for the step once it has run, and the first nodes outside. `str(report)` is readable
    text.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If `graph` is None in eager mode, or SmartStage is on in `config` with the options of
      another graph.
    tf.errors.InvalidArgumentError: If a session would refuse the SmartStage settings of `config`.
  """
  if isinstance(graph, ahead.AheadStep) or keras_callback.is_callback(graph):
    return graph.report()
  if isinstance(graph, config_pb2.ConfigProto):
    raise TypeError(
        "graph must be None or a tf.Graph, got a ConfigProto, which is the second argument: call"
        " tf.staging.explain(config=config).")
  uncalled.check(graph)
  if not isinstance(graph, (ops.Graph, type(None))):
    raise TypeError(
        "graph must be None, a tf.Graph, a step of tf.staging.ahead or a callback tf.staging.SmartStage(), got"
        f" {graph!r} of type {type(graph).__name__}.{hints.hint_for(graph, 'tf.staging.explain')}")
  if not isinstance(config, (config_pb2.ConfigProto, type(None))):
    raise TypeError(
        f"config must be None or a tf.compat.v1.ConfigProto, got {config!r} of type"
        f" {type(config).__name__}.")
  if graph is None and context.executing_eagerly():
    raise ValueError(
        "graph must be given while eager execution is on. Call tf.staging.explain(graph) with the"
        " graph that a session will run.")
  graph = graph or ops.get_default_graph()
  config = setting.applied_to(config or config_pb2.ConfigProto())
  enabled = optimizer_options.does_smart_stage(config)
  if enabled:
    graph_key.check(graph, config)
  serialized = _serialized_graph(graph), config.SerializeToString()
  found = _pywrap_staging.stage_report(*serialized)
  try:
    destinations = _pywrap_staging.record_destinations(*serialized)
  except errors.OpError:
    destinations = None
  unstaged_sources = _outside(found["unstaged_sources"])
  staged_graph = explain_graph.StagedGraph(
      nodes=tuple(found["nodes"]),
      edges=tuple(found["edges"]),
      whys=tuple(explain_graph.Why(*why) for why in found["whys"]),
      why_of=tuple(found["why_of"]),
      step_only=frozenset(found["step_only"]))
  return explain_report.StageReport(
      enabled=enabled,
      async_embedding=config.graph_options.optimizer_options.do_async_embedding,
      num_nodes=len(found["nodes"]),
      stages=tuple(_stage(destinations, **stage) for stage in found["stages"]),
      unstaged_sources=unstaged_sources,
      reasons=tuple(
          explain_data.Reason(nodes=count, example=explain_data.OutsideNode(*example), about=tuple(about))
          for count, example, about in found["reasons"]),
      advice=limiting_nodes.advice(staged_graph, [source.name for source in unstaged_sources]),
      graph=staged_graph,
      notes=needed_runners.reported(graph))


def _stage(
    destinations: Optional[dict[str, list[tuple[str, list[str]]]]], name, by_hand, sources, nodes, boundary, elements,
    iterators, changing, outside, variables, stale_steps) -> explain_data.Stage:
  tensors = _tensors(boundary) + _tensors(elements)
  return explain_data.Stage(
      name=name,
      by_hand=by_hand,
      sources=tuple(sources),
      nodes=tuple(nodes),
      boundary=_tensors(boundary),
      elements=_tensors(elements),
      outside=_outside(outside),
      variables=tuple(variables),
      stale_steps=stale_steps,
      iterators=tuple(explain_data.StageIterator(name, op, tuple(readers)) for name, op, readers in iterators),
      changing=tuple(explain_data.ChangingState(name, op, tuple(changers)) for name, op, changers in changing),
      parts=None if destinations is None else _parts(tensors, destinations.get(name, [])))


def _parts(
    tensors: tuple[explain_data.BoundaryTensor, ...],
    destinations: list[tuple[str, list[str]]]) -> tuple[explain_data.RecordPart, ...]:
  indices = {tensor.name: i for i, tensor in enumerate(tensors)}
  return record_parts.of(
      tensors, [(device, [indices[name] for name in names if name in indices]) for device, names in destinations])


def _tensors(tensors: list[tuple]) -> tuple[explain_data.BoundaryTensor, ...]:
  return tuple(
      explain_data.BoundaryTensor(tensor, dtypes.as_dtype(dtype), _shape(dims)) for tensor, dtype, dims in tensors)


def _shape(dims: Optional[list[int]]) -> tensor_shape.TensorShape:
  return tensor_shape.TensorShape(
      None if dims is None else [None if dim < 0 else dim for dim in dims])


def _outside(nodes: list[tuple[str, str, str]]) -> tuple[explain_data.OutsideNode, ...]:
  return tuple(explain_data.OutsideNode(*node) for node in nodes)


def _serialized_graph(graph: ops.Graph) -> bytes:
  """Serializes a graph's definition, without building it as a Python message first.

  Args:
    graph: The graph.

  Returns:
    A serialized `GraphDef`.
  """
  with c_api_util.tf_buffer() as buffer:
    pywrap_tf_session.TF_GraphToGraphDef(graph._c_graph, buffer)
    return pywrap_tf_session.TF_GetBuffer(buffer)
