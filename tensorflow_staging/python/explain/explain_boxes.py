# SPDX-License-Identifier: Apache-2.0
"""Groups nodes into few boxes by name scope, so that a picture of any graph can be read."""

import dataclasses
import heapq
import re
from collections.abc import Callable
from collections.abc import Sequence

# What tells nodes or scopes apart that are alike otherwise.
_NUMBER = re.compile(r"\d+")


@dataclasses.dataclass(frozen=True)
class Box:
  """Nodes that are drawn as one.

  Attributes:
    label: What their names have in common; the name of a single node.
    members: Their indices.
  """
  label: str
  members: tuple[int, ...]


def boxes(names: Sequence[str], members: Sequence[int], limit: int) -> list[Box]:
  """Groups nodes, as finely as a number of boxes allows.

  Scopes are opened one after the other, the largest one first. Where a scope has too many
  children, those that are alike but for numbers become one; where that does not help, only its
  largest children are told apart.

  Args:
    names: Names of nodes, with scopes.
    members: The indices of those that are to be grouped; at least one.
    limit: How many boxes there may be; at least 1.

  Returns:
    The boxes, by label.
  """
  done: list[Box] = []
  # Size, negative so that the largest is first; scope; depth of the scope; members.
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
  """The part of a name at a depth, without its numbers."""
  parts = name.split("/")
  return _NUMBER.sub("*", parts[depth]) if depth < len(parts) else ""


def _box(names: Sequence[str], scope: str, pattern: str, nodes: tuple[int, ...]) -> Box:
  return Box(names[nodes[0]] if len(nodes) == 1 else _join(scope, pattern), nodes)


def _join(scope: str, name: str) -> str:
  return f"{scope}/{name}" if scope else name
