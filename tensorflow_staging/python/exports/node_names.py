# SPDX-License-Identifier: Apache-2.0
"""The names by which nodes of a graph, or of the body of a function, refer to each other."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Optional

from tensorflow.core.framework import node_def_pb2

_COLOCATION_ATTR = "_class"
_COLOCATION_PREFIX = b"loc:@"


def is_control(name: str) -> bool:
  """Returns whether an input is only to be waited for."""
  return name.startswith("^")


def node_of(name: str) -> str:
  """Returns the node that an input comes from, or waits for."""
  return name.lstrip("^").partition(":")[0]


def with_node(name: str, node: str) -> str:
  """Returns the name of the same input of another node."""
  return name.replace(node_of(name), node, 1)


def normalized(name: str) -> str:
  """Returns the full name of a tensor of a graph: `x` stands for `x:0`."""
  return name if is_control(name) or ":" in name else f"{name}:0"


def rename_colocation(node: node_def_pb2.NodeDef, names: Mapping[str, str]) -> None:
  """Lets a node be placed with the nodes that have other names now."""
  _change_colocation(node, lambda name: names.get(name, name))


def keep_colocation(node: node_def_pb2.NodeDef, exists: Callable[[str], bool]) -> None:
  """Forgets that a node is to be placed with nodes that do not exist."""
  _change_colocation(node, lambda name: name if exists(name) else None)


def _change_colocation(node: node_def_pb2.NodeDef, change: Callable[[str], Optional[str]]) -> None:
  if _COLOCATION_ATTR not in node.attr:
    return
  kept = []
  for entry in node.attr[_COLOCATION_ATTR].list.s:
    if entry.startswith(_COLOCATION_PREFIX):
      name = change(entry[len(_COLOCATION_PREFIX):].decode())
      if name is not None:
        kept.append(_COLOCATION_PREFIX + name.encode())
    else:
      kept.append(entry)
  if kept:
    node.attr[_COLOCATION_ATTR].list.s[:] = kept
  else:
    del node.attr[_COLOCATION_ATTR]
