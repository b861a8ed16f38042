# SPDX-License-Identifier: Apache-2.0
"""Finds out which stages of a graph take the records of which others."""

import collections
from collections.abc import Iterable

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import ops

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import stage_graph

# The container and the name of a stage's buffer.
_Buffer = tuple[bytes, bytes]


def stages_before(graph: ops.Graph) -> dict[str, set[str]]:
  """Returns, for each stage of `tf.staged`, the stages whose records its runs take.

  Args:
    graph: The graph of the stages.

  Returns:
    Maps the name of a stage to those of the stages directly before it. Empty if the graph has fewer than two
    stages, which can form no chain.
  """
  stages = [
      config_pb2.PrefetchRunnerOptions.FromString(runner)
      for runner in graph.get_collection(stage_graph.RUNNERS_COLLECTION)
  ]
  if len(stages) < 2:
    return {}
  names = {_buffer_of(op): stage.name for stage in stages for op in _find(graph, [stage.cancel_op])}
  before = collections.defaultdict(set)
  for stage in stages:
    fed = (tensor.split(":")[0] for tensor in stage.named_feed_input_tensors.values())
    taken = _buffers_taken_by(_find(graph, [*stage.fetch_ops, *fed]))
    before[stage.name].update(names[buffer] for buffer in taken if buffer in names)
  return dict(before)


def _find(graph: ops.Graph, names: Iterable[str]) -> list[ops.Operation]:
  """Returns the ops with these names. The session reports those that the graph lacks."""
  found = []
  for name in dict.fromkeys(names):
    try:
      found.append(graph.get_operation_by_name(name))
    except KeyError:
      pass
  return found


def _buffers_taken_by(last: list[ops.Operation]) -> set[_Buffer]:
  """Returns the buffers whose records the ops that lead to these take."""
  taken = set()
  seen = set(last)
  to_visit = list(last)
  while to_visit:
    op = to_visit.pop()
    if op.type == vocabulary.TAKE_OP:
      taken.add(_buffer_of(op))
      continue
    for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
      if before not in seen:
        seen.add(before)
        to_visit.append(before)
  return taken


def _buffer_of(op: ops.Operation) -> _Buffer:
  return op.get_attr(vocabulary.CONTAINER_ATTR), op.get_attr(vocabulary.SHARED_NAME_ATTR)
