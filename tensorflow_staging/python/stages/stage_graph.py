# SPDX-License-Identifier: Apache-2.0
"""Adds one stage to a graph: the ops around its buffer, and the options of its runner."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Optional
from typing import Union

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.framework import tensor_shape

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import feed_generator
from tensorflow_staging.python.stages import gen_tensor_buffer_ops
from tensorflow_staging.python.stages import prefetch_options
from tensorflow_staging.python.stages import python_values
from tensorflow_staging.python.stages import runner_options_collection

# The graph collection of the stages' serialized PrefetchRunnerOptions.
RUNNERS_COLLECTION = runner_options_collection.NAME


def add_stage(
    records: Sequence[Sequence[Union[tensor_lib.Tensor, python_values.PythonValue]]],
    feeds: Mapping[str, str],
    options: prefetch_options.PrefetchOptions,
    name: Optional[str],
    graph: ops.Graph,
    generator_feed: Optional[feed_generator.GeneratorFeed] = None,
) -> list[tensor_lib.Tensor]:
  """Cuts a graph with a buffer: the region puts records into it, and the step takes them.

  Args:
    records: The record of each source, all of the same types. Its constants are added to the
      graph. If there is one source, `options.num_threads` threads run it; if there are several,
      each has one thread.
    feeds: Maps the name of each fed tensor to the name of the tensor that yields its value.
    options: The options of the stage.
    name: The name scope to open; None opens "prefetch".
    graph: The graph that holds the tensors of `records` and `feeds`.
    generator_feed: Further feeds, whose values Python code yields.

  Returns:
    The taken record: tensors of the types of the records, and of the most specific static shapes
    that fit every source.
  """
  with graph.name_scope(_unused_scope(name or vocabulary.DEFAULT_STAGE_NAME, graph)) as scope:
    stage = scope[:-1]
    attrs = {
        vocabulary.SHARED_NAME_ATTR: stage,
        vocabulary.CAPACITY_ATTR: options.capacity,
        vocabulary.CAPACITY_BYTES_ATTR: options.capacity_bytes,
        vocabulary.DEVICE_CAPACITY_BYTES_ATTR: options.device_capacity_bytes,
    }
    # Control dependencies that surround the call belong to the step. The region must not run them
    # for every record.
    with graph.control_dependencies(None):
      records = [_with_constants(record, graph) for record in records]
      puts = [_put(record, options, attrs, graph) for record in records]
      # The buffer lives on one device, so every op that uses it has to be placed there.
      with graph.colocate_with(puts[0], ignore_existing=True):
        runner = options.runner_options(stage)
        threads = 1 if options.tunes_threads else options.num_threads
        runner.fetch_ops.extend([puts[0].name] * threads if len(puts) == 1 else [p.name for p in puts])
        runner.named_feed_input_tensors.update(feeds)
        if generator_feed is not None:
          _add_generator_feed(generator_feed, runner, graph)
        _add_control_ops(runner, attrs, graph)
      for fed, value in runner.named_feed_input_tensors.items():
        _mark_feed(graph.get_tensor_by_name(fed), graph.get_tensor_by_name(value))
    with graph.colocate_with(puts[0], ignore_existing=True):
      taken = gen_tensor_buffer_ops.tensor_buffer_take(
          dtypes=[tensor.dtype.base_dtype for tensor in records[0]],
          shapes=_common_shapes(records),
          name=vocabulary.TAKE_OP,
          **attrs)
  graph.add_to_collection(RUNNERS_COLLECTION, runner.SerializeToString())
  return taken


def _unused_scope(name: str, graph: ops.Graph) -> str:
  """Returns the scope of a new stage, after which its buffer is named.

  TensorFlow makes scopes unique, but does not count those of nodes that were imported.
  """
  buffers = {
      op.get_attr(vocabulary.SHARED_NAME_ATTR).decode()
      for op in graph.get_operations() if op.type in (vocabulary.PUT_OP, vocabulary.TAKE_OP)
  }
  while True:
    try:
      with graph.name_scope(name) as scope:
        if scope[:-1] not in buffers:
          return scope
    except ValueError as error:
      raise ValueError(f"name must be that of a scope, got {name!r}: {error}") from error


def _with_constants(record, graph) -> list[tensor_lib.Tensor]:
  """Adds the constants of a record to the graph, and returns the record's tensors."""
  # As in _add_control_ops: strings have no kernel on an accelerator, and the values are on the host.
  with graph.colocate_with(None, ignore_existing=True), graph.device("/cpu:0"):
    return [
        component.add_to_graph() if isinstance(component, python_values.PythonValue) else component
        for component in record
    ]


def _put(record, options, attrs, graph) -> ops.Operation:
  """Adds the op that puts the record of one source into the buffer."""
  put = gen_tensor_buffer_ops.tensor_buffer_put(
      record, timeout_millis=options.timeout_millis, name=vocabulary.PUT_OP, **attrs)
  # The number of a Put is that of the stage, also where a tf.stream surrounds the call.
  if options.stage_subgraph_stream_id or vocabulary.STREAM_ATTR in put.node_def.attr:
    put._set_attr(
        vocabulary.STREAM_ATTR, attr_value_pb2.AttrValue(i=options.stage_subgraph_stream_id))
  if options.is_ordered:
    put._set_attr(vocabulary.IS_ORDERED_ATTR, attr_value_pb2.AttrValue(b=True))
  return put


def _mark_feed(fed: tensor_lib.Tensor, value: tensor_lib.Tensor) -> None:
  """Marks a fed tensor, which regions do not compute, and what yields its value ahead of them."""
  outputs = {fed.value_index}
  if vocabulary.FED_OUTPUTS_ATTR in fed.op.node_def.attr:
    outputs.update(fed.op.get_attr(vocabulary.FED_OUTPUTS_ATTR))
  fed.op._set_attr(
      vocabulary.FED_OUTPUTS_ATTR,
      attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=sorted(outputs))))
  value.op._set_attr(vocabulary.FEED_VALUE_ATTR, attr_value_pb2.AttrValue(b=True))


def _add_generator_feed(generator_feed, runner, graph) -> None:
  """Adds the feeds from Python code."""
  # Python code runs on the CPU of the process that builds the graph, whichever device the stage is on.
  with graph.name_scope(feed_generator.SCOPE), graph.colocate_with(None, ignore_existing=True):
    with graph.device("/cpu:0"):
      runner.named_feed_input_tensors.update(generator_feed.add_to_graph())


def _add_control_ops(runner, attrs, graph) -> None:
  """Adds the buffer's control ops, and writes their names to the options of the runner."""
  # A string has no kernel on an accelerator. The scope replaces only the device type: job and task
  # remain those of the buffer's device.
  with graph.colocate_with(None, ignore_existing=True), graph.device("/cpu:0"):
    code = constant_op.constant(errors.OK, dtypes.int32, name="error_code")
    message = constant_op.constant("", dtypes.string, name="error_message")
  cancel = gen_tensor_buffer_ops.tensor_buffer_cancel(name=vocabulary.CANCEL_OP, **attrs)
  resume = gen_tensor_buffer_ops.tensor_buffer_resume(name=vocabulary.RESUME_OP, **attrs)
  close = gen_tensor_buffer_ops.tensor_buffer_close(
      code, message, name=vocabulary.CLOSE_OP, **attrs)
  gen_tensor_buffer_ops.tensor_buffer_size(name=vocabulary.SIZE_OP, **attrs)
  stats = gen_tensor_buffer_ops.tensor_buffer_stats(name=vocabulary.STATS_OP, **attrs)
  discard = gen_tensor_buffer_ops.tensor_buffer_discard(name=vocabulary.DISCARD_OP, **attrs)
  runner.cancel_op = cancel.name
  runner.resume_op = resume.name
  runner.close_op = close.name
  runner.error_code_tensor = code.name
  runner.error_message_tensor = message.name
  runner.stats_tensor = stats.name
  runner.discard_tensor = discard.name


def _common_shapes(records) -> list[tensor_shape.TensorShape]:
  """Returns, for each component, the most specific static shape that fits every source."""
  shapes = [tensor.shape for tensor in records[0]]
  for record in records[1:]:
    shapes = [
        shape.most_specific_compatible_shape(tensor.shape)
        for shape, tensor in zip(shapes, record)
    ]
  return shapes


ops.NotDifferentiable(vocabulary.PUT_OP)
ops.NotDifferentiable(vocabulary.TAKE_OP)
