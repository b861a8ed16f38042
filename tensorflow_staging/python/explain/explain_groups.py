# SPDX-License-Identifier: Apache-2.0
"""Orders and groups the names of a report, so that long lists of a large graph stay short."""

import functools
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

_DIGITS = re.compile(r"(\d+)")

# The first scopes of what an optimizer adds to a graph.
_OF_OPTIMIZER = re.compile(r"(?:.*/)?(?:gradients|train|[A-Za-z]*(?:Adam|Adagrad|Adadelta|Ftrl|Momentum|GradientDescent"
                           r"|RMSProp)[A-Za-z]*|Optimizer\w*)(?:_\d+)?(?:/|$)")


@functools.cache
def _part_key(part: str) -> tuple[tuple[int, int, str], ...]:
  return tuple(
      (0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in _DIGITS.split(part) if piece)


def by_number(name: str) -> list[tuple]:
  """Returns a key that sorts names by scope, and numbers in them by value: "layer_9" before "layer_10"."""
  # A large graph has few different parts of names.
  return [_part_key(part) for part in name.split("/")]


def is_of_optimizer(name: str) -> bool:
  """Returns whether a node computes gradients or updates, by the scope that TensorFlow's optimizers give it."""
  return _OF_OPTIMIZER.match(name) is not None


def by_scope(
    items: Sequence[_Item], name_of: Callable[[_Item], str], size_of: Callable[[_Item], int],
    most: int, above: str = "") -> list[tuple[str, list[_Item]]]:
  """Groups items by the name scope that they share, the largest group and the largest item first.

  Args:
    items: The items.
    name_of: Returns the name of an item.
    size_of: Returns the size of an item.
    most: How many groups there may be. The scopes are as deep as that allows, but at least by one level below `above`.
    above: A scope in which all items are.

  Returns:
    The scope of each group, `above` for names directly in it, and its items.
  """
  ordered = sorted(items, key=lambda item: (-size_of(item), by_number(name_of(item))))
  scopes = [name_of(item).split("/")[:-1] for item in ordered]
  first = len(above.split("/")) + 1 if above else 1
  groups: dict[str, list[_Item]] = {above: ordered}
  for depth in range(first, 1 + max(map(len, scopes), default=0)):
    deeper: dict[str, list[_Item]] = {}
    for item, scope in zip(ordered, scopes):
      deeper.setdefault("/".join(scope[:depth]), []).append(item)
    if depth > first and len(deeper) > most:
      break
    groups = deeper
  return sorted(groups.items(), key=lambda group: (-sum(map(size_of, group[1])), by_number(group[0])))


def without_optimizer(items: Iterable[_Item], name_of: Callable[[_Item], str]) -> tuple[list[_Item], list[_Item]]:
  """Returns the items whose names are the program's own, and those of an optimizer, both in their order."""
  own: list[_Item] = []
  internal: list[_Item] = []
  for item in items:
    (internal if is_of_optimizer(name_of(item)) else own).append(item)
  return own, internal
