# SPDX-License-Identifier: Apache-2.0
"""The graph of one stage: the ops around its buffer, and what the runner has to know of them."""

from collections.abc import Mapping
from collections.abc import Sequence

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor_shape

from tensorflow_staging.python.stages import feed_generator
from tensorflow_staging.python.stages import gen_tensor_buffer_ops
from tensorflow_staging.python.stages import prefetch_options
from tensorflow_staging.python.stages import runner_options_collection

# Where a graph keeps the serialized PrefetchRunnerOptions of its stages.
RUNNERS_COLLECTION = runner_options_collection.NAME

# The attribute by which the passes for several GPU streams know a node's stream.
_STREAM_ATTR = "_stream_id"


def add_stage(
    records: Sequence[Sequence[ops.Tensor]],
    feeds: Mapping[str, str],
    options: prefetch_options.PrefetchOptions,
    name: str | None,
    graph: ops.Graph,
    generator_feed: feed_generator.GeneratorFeed | None = None,
) -> list[ops.Tensor]:
  """Cuts a graph: records go into a buffer, the tensors returned come out of it.

  Args:
    records: One entry for each source of records, all of the same types. A single source is run
      by `options.num_threads` threads; of several, each has a thread of its own.
    feeds: From the name of each tensor to feed to that of the tensor that yields its value.
    options: How the stage runs.
    name: The name scope to open; None opens "prefetch".
    graph: The graph of all of these.
    generator_feed: More feeds, from Python code.

  Returns:
    The taken record: tensors of the types of the records, and of the static shapes that the
    sources have in common.
  """
  with graph.name_scope(name or "prefetch") as scope:
    stage = scope[:-1]
    attrs = {"shared_name": stage, "capacity": options.capacity}
    # What runs ahead depends on its record alone: a dependency that surrounds the call belongs to
    # the training step, and must not run once more for every record.
    with graph.control_dependencies(None):
      puts = [_put(record, options, attrs, graph) for record in records]
      # The buffer lives on one device, and every op of the stage has to find it there.
      with graph.colocate_with(puts[0], ignore_existing=True):
        runner = options.runner_options(stage)
        runner.fetch_ops.extend(
            [puts[0].name] * options.num_threads if len(puts) == 1 else [p.name for p in puts])
        runner.named_feed_input_tensors.update(feeds)
        _add_control_ops(runner, attrs, _begin_data(generator_feed, runner, graph), graph)
    with graph.colocate_with(puts[0], ignore_existing=True):
      taken = gen_tensor_buffer_ops.tensor_buffer_take(
          dtypes=[tensor.dtype.base_dtype for tensor in records[0]],
          shapes=_common_shapes(records),
          name="TensorBufferTake",
          **attrs)
  graph.add_to_collection(RUNNERS_COLLECTION, runner.SerializeToString())
  return taken


def _put(record, options, attrs, graph) -> ops.Operation:
  """Adds the op that puts one source's record into the buffer."""
  put = gen_tensor_buffer_ops.tensor_buffer_put(
      record, timeout_millis=options.timeout_millis, name="TensorBufferPut", **attrs)
  if options.stage_subgraph_stream_id:
    put._set_attr(
        _STREAM_ATTR, attr_value_pb2.AttrValue(i=options.stage_subgraph_stream_id))
  return put


def _begin_data(generator_feed, runner, graph) -> list[ops.Operation]:
  """Adds what yields the feeds of Python code, and returns the ops that begin its data."""
  if generator_feed is None:
    return []
  # Python runs where the session's graph is built: on the CPU, beside any device of the stage.
  with graph.name_scope("feed_generator"), graph.colocate_with(None, ignore_existing=True):
    with graph.device("/cpu:0"):
      feeds, begin = generator_feed.add_to_graph()
  runner.named_feed_input_tensors.update(feeds)
  return [begin]


def _add_control_ops(runner, attrs, before_start, graph) -> None:
  """Adds the ops that steer and watch the buffer, and names them to the runner."""
  # A string has no kernel on an accelerator; the job and task of the buffer's device stay.
  with graph.colocate_with(None, ignore_existing=True), graph.device("/cpu:0"):
    code = constant_op.constant(errors.OK, dtypes.int32, name="error_code")
    message = constant_op.constant("", dtypes.string, name="error_message")
  cancel = gen_tensor_buffer_ops.tensor_buffer_cancel(name="TensorBufferCancel", **attrs)
  with graph.control_dependencies(before_start):
    resume = gen_tensor_buffer_ops.tensor_buffer_resume(name="TensorBufferResume", **attrs)
  close = gen_tensor_buffer_ops.tensor_buffer_close(
      code, message, name="TensorBufferClose", **attrs)
  gen_tensor_buffer_ops.tensor_buffer_size(name="TensorBufferSize", **attrs)
  runner.cancel_op = cancel.name
  runner.resume_op = resume.name
  runner.close_op = close.name
  runner.error_code_tensor = code.name
  runner.error_message_tensor = message.name


def _common_shapes(records) -> list[tensor_shape.TensorShape]:
  """The most that is known of the shape of each component, whichever source it comes from."""
  shapes = [tensor.shape for tensor in records[0]]
  for record in records[1:]:
    shapes = [
        shape.most_specific_compatible_shape(tensor.shape)
        for shape, tensor in zip(shapes, record, strict=True)
    ]
  return shapes


ops.NotDifferentiable("TensorBufferPut")
ops.NotDifferentiable("TensorBufferTake")
