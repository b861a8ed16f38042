# SPDX-License-Identifier: Apache-2.0
"""An iterator of `tf.data`: some data and a position in them."""

from __future__ import annotations

from typing import NamedTuple

from tensorflow_staging.python.testing.histories import outcomes


class Data(NamedTuple):
  """What an initialiser gives an iterator.

  Attributes:
    base: The number of these data, which all their elements have.
    length: How many elements there are.
    invalid: The positions at which a read fails with `outcomes.INVALID`.
    missing: The same for `outcomes.MISSING`.
  """

  base: int
  length: int
  invalid: frozenset[int] = frozenset()
  missing: frozenset[int] = frozenset()

  def outcome(self, source: int, position: int) -> outcomes.Outcome:
    """Returns what a read at a position gives.

    Args:
      source: The number of the source.
      position: The position.
    """
    if position >= self.length:
      return outcomes.END
    element = outcomes.element(source, self.base, position)
    if position in self.invalid:
      return outcomes.Error(outcomes.INVALID, f"source {element}")
    if position in self.missing:
      return outcomes.Error(outcomes.MISSING, f"source {element}")
    return element


class Iterator(NamedTuple):
  """An iterator. It has no data before the first initialiser."""

  source: int
  data: Data | None = None
  position: int = 0

  def next(self) -> tuple[outcomes.Outcome, Iterator]:
    """Returns what a read gives, and the iterator after it."""
    outcome = self.data.outcome(self.source, self.position)
    return outcome, self if outcome is outcomes.END else self._replace(position=self.position + 1)
