# SPDX-License-Identifier: Apache-2.0
"""DeepRec's class that stages lookups in the program's graph, instead of in that of a session."""

from collections.abc import Iterable
from typing import Optional

from tensorflow.python.framework import ops

from tensorflow_staging.python.smart_stage import async_embedding_mark
from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import staged

_STAGE = "async_embedding"


class AsyncEmbeddingStage:
  """Adds a stage behind the tensors that `tf.async_embedding_mark_node` has marked.

  A session with `optimizer_options.do_async_embedding` does the same in its own graph, and finds the lookups by
  itself; this class is for programs that call DeepRec's. The stage is that of `tf.staged`: it needs
  `tf.make_prefetch_hook()`.
  """

  def __init__(self, threads_num: int = 1, capacity: int = 1, checkpoint_dir: Optional[str] = None):
    """Checks the arguments.

    Args:
      threads_num: The number of threads that compute the marked tensors, at least 1.
      capacity: The number of records that wait at most, at least 1.
      checkpoint_dir: Has no effect. `tf.staging.explain(graph).save_html(path)` shows the graph.

    Raises:
      TypeError: If `threads_num` or `capacity` is not an integer.
      ValueError: If one of them is out of range.
    """
    argument_checks.check_int("threads_num", threads_num, minimum=1)
    argument_checks.check_int("capacity", capacity, minimum=1)
    self._threads_num = threads_num
    self._capacity = capacity

  def stage(self, graph: ops.Graph) -> None:
    """Lets all that leads to the marked tensors of a graph run ahead of what uses them.

    Args:
      graph: The graph, complete with its training ops. No session may have run it.

    Raises:
      ValueError: If nothing is marked, or nothing uses what is marked.
    """
    marked = async_embedding_mark.marked_operations(graph)
    if not marked:
      raise ValueError(
          "The graph has no marked tensor. Mark what is looked up with tf.async_embedding_mark_node, or let a session"
          " find it: optimizer_options.do_async_embedding.")
    ahead = _with_what_leads_to(marked)
    uses = {}
    for operation in marked:
      for tensor in operation.outputs:
        users = [user for user in tensor.consumers() if user not in ahead]
        if users:
          uses[tensor.name] = (tensor, users)
    if not uses:
      raise ValueError(f"Nothing uses the marked tensors of {[operation.name for operation in marked]}.")
    with graph.as_default():
      taken = staged.staged(
          {name: tensor for name, (tensor, _) in uses.items()},
          capacity=self._capacity, num_threads=self._threads_num, timeout_millis=0, name=_STAGE)
    for name, (tensor, users) in uses.items():
      for user in users:
        for index, used in enumerate(user.inputs):
          if used is tensor:
            user._update_input(index, taken[name])


def _with_what_leads_to(operations: Iterable[ops.Operation]) -> set[ops.Operation]:
  found = set(operations)
  waiting = list(found)
  while waiting:
    operation = waiting.pop()
    new = {tensor.op for tensor in operation.inputs}.union(operation.control_inputs) - found
    found |= new
    waiting.extend(new)
  return found
