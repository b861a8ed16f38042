# SPDX-License-Identifier: Apache-2.0
"""Copies the part of a region that depends on the tensors that its stage feeds.

A stage feeds a tensor in its own runs alone. In a step, the same tensor has another value, so what depends on it cannot
be one node for both.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping

from tensorflow.core.framework import node_def_pb2

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.exports import node_names

_FRAME_ATTR = "frame_name"


class FedRegion:
  """The nodes of a region that have to be copied, under other names, because of what its stage feeds."""

  def __init__(self, stage: str, feeds: Mapping[str, str], nodes: Mapping[str, node_def_pb2.NodeDef]):
    """Checks the feeds of a stage.

    Args:
      stage: The name of the stage.
      feeds: The name of the tensor whose value the stage feeds, by the name of the tensor that is fed.
      nodes: All nodes of the graph, by their names.

    Raises:
      ValueError: If a feed names a tensor of a node that the graph does not have.
    """
    self._stage = stage
    self._feeds = {node_names.normalized(fed): node_names.normalized(value) for fed, value in feeds.items()}
    self._nodes = nodes
    for fed, value in self._feeds.items():
      for tensor in (fed, value):
        if node_names.node_of(tensor) not in nodes:
          raise ValueError(
              f"Stage {stage!r} feeds {fed!r} with {value!r}, but the graph has no node"
              f" {node_names.node_of(tensor)!r}.")

  def copy_before(self, put: node_def_pb2.NodeDef) -> tuple[list[str], list[node_def_pb2.NodeDef]]:
    """Copies what a put depends on and what depends on a fed tensor.

    Args:
      put: The node at the end of the region.

    Returns:
      The inputs of the put in the graph with the copies, and the copies.
    """
    copied = self._depend_on_feeds(put) if self._feeds else set()
    names = {name: f"{self._stage}/unstaged/{name}" for name in copied}
    copies = []
    for name in sorted(copied):
      copy = node_def_pb2.NodeDef()
      copy.CopyFrom(self._nodes[name])
      copy.name = names[name]
      copy.input[:] = self._inputs(copy, names)
      node_names.rename_colocation(copy, names)
      if _FRAME_ATTR in copy.attr:
        # Two loops in frames of one name would be one loop.
        copy.attr[_FRAME_ATTR].s = f"{self._stage}/unstaged/".encode() + copy.attr[_FRAME_ATTR].s
      copies.append(copy)
    return self._inputs(put, names), copies

  def _inputs(self, node: node_def_pb2.NodeDef, names: Mapping[str, str]) -> list[str]:
    inputs = []
    for name in node.input:
      name = self._feeds.get(node_names.normalized(name), name)
      inputs.append(node_names.with_node(name, names.get(node_names.node_of(name), node_names.node_of(name))))
    return inputs

  def _depend_on_feeds(self, put: node_def_pb2.NodeDef) -> set[str]:
    """Returns the nodes between the fed tensors and a put."""
    users = collections.defaultdict(set)
    fed_users = set()
    visited = {put.name}
    waiting = [put]
    while waiting:
      node = waiting.pop()
      # What another stage computes, it computes with its own feeds.
      for name in node.input if node.op != vocabulary.TAKE_OP else ():
        if node_names.normalized(name) in self._feeds:
          fed_users.add(node.name)
          continue
        before = node_names.node_of(name)
        users[before].add(node.name)
        if before in self._nodes and before not in visited:
          visited.add(before)
          waiting.append(self._nodes[before])
    copied = _reached(fed_users, users)
    # A loop has all its nodes in one frame, also those that do not depend on what is fed.
    while new := self._entries_of_frames(copied, visited) - copied:
      copied |= _reached(new, users)
    return copied - {put.name}

  def _entries_of_frames(self, copied: set[str], region: set[str]) -> set[str]:
    """Returns all ways into the loops that have a copied one."""
    frames = {self._nodes[name].attr[_FRAME_ATTR].s for name in copied if _FRAME_ATTR in self._nodes[name].attr}
    return {
        name for name in region
        if _FRAME_ATTR in self._nodes[name].attr and self._nodes[name].attr[_FRAME_ATTR].s in frames
    }


def _reached(starts: Iterable[str], next_of: Mapping[str, set[str]]) -> set[str]:
  reached = set(starts)
  waiting = list(reached)
  while waiting:
    new = next_of.get(waiting.pop(), set()) - reached
    reached |= new
    waiting.extend(new)
  return reached
