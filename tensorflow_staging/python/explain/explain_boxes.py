# SPDX-License-Identifier: Apache-2.0
"""Groups nodes by name scope into a few boxes, so that the picture of any graph stays readable."""

import dataclasses
import heapq
import re
from collections.abc import Callable
from collections.abc import Sequence

# Names that differ only in numbers count as alike.
_NUMBER = re.compile(r"\d+")


@dataclasses.dataclass(frozen=True)
class Box:
  """Nodes that the picture shows as one box.

  Attributes:
    label: The common part of the nodes' names, or the name of a single node.
    members: The indices of the nodes.
  """
  label: str
  members: tuple[int, ...]


def boxes(names: Sequence[str], members: Sequence[int], limit: int) -> list[Box]:
  """Groups nodes as finely as `limit` allows.

  Splits one scope after the other into its children, the largest scope first. If a scope has too
  many children, merges the children whose names differ only in numbers. If these are still too
  many, keeps only the largest children apart and merges the others.

  Args:
    names: The names of all nodes, with their scopes.
    members: The indices of the nodes to group; at least one.
    limit: The maximum number of boxes; at least 1.

  Returns:
    The boxes, sorted by label.
  """
  done: list[Box] = []
  # A heap of (negative size, so that the largest scope comes first; scope; its depth; its members).
  closed = [(-len(members), "", 0, tuple(members))]
  while closed:
    _, scope, depth, group = heapq.heappop(closed)
    if len(group) == 1:
      done.append(Box(names[group[0]], group))
      continue
    room = limit - len(closed) - len(done)
    children = _split(group, lambda i, depth=depth: "/".join(names[i].split("/")[:depth + 1]))
    if len(children) > room:
      alike = _split(group, lambda i, depth=depth: _pattern(names[i], depth))
      if len(alike) <= room:
        done += [_box(names, scope, pattern, nodes) for pattern, nodes in alike.items()]
        continue
      largest = sorted(children, key=lambda child: (-len(children[child]), child))
      others = largest[room // 2:]
      done.append(Box(_join(scope, "*"), sum((children.pop(child) for child in others), ())))
    for child, nodes in children.items():
      heapq.heappush(closed, (-len(nodes), child, depth + 1, nodes))
  return sorted(done, key=lambda box: (box.label, box.members))


def _split(group: Sequence[int], key: Callable[[int], str]) -> dict[str, tuple[int, ...]]:
  found: dict[str, list[int]] = {}
  for member in group:
    found.setdefault(key(member), []).append(member)
  return {name: tuple(nodes) for name, nodes in found.items()}


def _pattern(name: str, depth: int) -> str:
  """Returns the part of a name at `depth`, with each number replaced by "*"."""
  parts = name.split("/")
  return _NUMBER.sub("*", parts[depth]) if depth < len(parts) else ""


def _box(names: Sequence[str], scope: str, pattern: str, nodes: tuple[int, ...]) -> Box:
  return Box(names[nodes[0]] if len(nodes) == 1 else _join(scope, pattern), nodes)


def _join(scope: str, name: str) -> str:
  return f"{scope}/{name}" if scope else name
