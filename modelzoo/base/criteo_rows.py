# SPDX-License-Identifier: Apache-2.0
"""Random rows in Criteo's format, with its cardinalities and skew, and a signal that models can learn."""

from __future__ import annotations

import numpy as np

from modelzoo.base import criteo
from modelzoo.base import distributions

# The number of different values of each category in the data of Criteo's competition at Kaggle.
CARDINALITIES = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652,
    2173, 4, 7046547, 18, 15, 286181, 105, 142572)
_SKEW = 1.1
_MISSING = 0.05
# The logarithm of the largest number.
_LARGEST = 14.0
# About a third of the rows are clicks.
_BIAS = -1.7
_CATEGORY_WEIGHT = 0.35
_PAIR_WEIGHT = 0.5
_NUMBER_WEIGHT = 0.25

Columns = dict[str, list]


def rows(random: np.random.Generator, count: int) -> Columns:
  """Returns rows.

  The log-odds of a click are a sum of a weight for each value of each category, a weight for each pair of values of two
  columns, and a linear function of the logarithms of the numbers.

  Args:
    random: Draws the rows.
    count: How many.

  Returns:
    The values of each column, in the order of `criteo.COLUMNS`. None is a missing value.
  """
  odds = np.full(count, _BIAS)
  columns: Columns = {}
  for index, name in enumerate(criteo.NUMBERS):
    size = np.minimum(random.exponential(1.0 + 0.15 * index, count), _LARGEST)
    odds += _NUMBER_WEIGHT * (-1) ** index * (size - 1.0 - 0.15 * index)
    columns[name] = _with_missing(random, np.expm1(size).astype(np.int64).tolist())
  values = [distributions.zipf(random, cardinality, _SKEW, count) for cardinality in CARDINALITIES]
  for index, value in enumerate(values):
    odds += _CATEGORY_WEIGHT * distributions.weight(index, value)
  for left, right in ((5, 8), (16, 19), (21, 22)):
    odds += _PAIR_WEIGHT * distributions.weight(100 + left, values[left] * 1000 + values[right])
  for index, (name, value) in enumerate(zip(criteo.CATEGORIES, values, strict=True)):
    words = distributions.hexadecimal(distributions.mix(index, value))
    columns[name] = _with_missing(random, words) if index % 4 == 2 else words
  return {criteo.LABEL: distributions.clicks(random, odds)} | columns


def _with_missing(random: np.random.Generator, values: list) -> list:
  for index in np.flatnonzero(random.random(len(values)) < _MISSING).tolist():
    values[index] = None
  return values
