# SPDX-License-Identifier: Apache-2.0
"""Random rows in Taobao's format, with its cardinalities and skew, and a signal that models can learn."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterable

import numpy as np

from modelzoo.base import distributions
from modelzoo.base import row_files
from modelzoo.base import taobao

# As in the public data of Taobao's user behaviour. An item belongs to one category; each has about as many.
_USERS = 987_994
_CATEGORIES = 9_439
_ITEMS_OF_A_CATEGORY = 441
_SKEW = 1.3

_LONGEST = 50
_MEAN_LENGTH = 18
# The categories that a user likes.
_LIKED = 3
_BIAS = -1.4
_CATEGORY_WEIGHT = 0.8
# What it adds to the log-odds if all or the newest part of the history are of the item's category.
_HISTORY_WEIGHT = 2.0
_NEWEST_WEIGHT = 1.5
_NEWEST = 5


def rows(random: np.random.Generator, count: int) -> row_files.Columns:
  """Returns rows.

  Each user likes a few categories, changes to another one from time to time, and mostly clicks items of these. The
  log-odds of a click depend on the item's category, and on how many items of the history, and of its newest part, are
  of that category.

  Args:
    random: Draws the rows.
    count: How many.

  Returns:
    The columns of `taobao.COLUMNS` and `taobao.NEGATIVE`.
  """
  users = distributions.zipf(random, _USERS, _SKEW, count)
  lengths = np.clip(random.geometric(1 / _MEAN_LENGTH, count), 1, _LONGEST)
  liked = np.stack([_liked_category(users, index) for index in range(_LIKED)], axis=1)
  # Which liked category a click is of: it stays the same for runs of clicks.
  changes = random.random((count, _LONGEST)) < 0.15
  phase = (np.cumsum(changes, axis=1) + random.integers(0, _LIKED, (count, 1))) % _LIKED
  categories = np.take_along_axis(liked, phase, axis=1)
  strays = random.random((count, _LONGEST)) < 0.2
  categories[strays] = _categories(random, np.count_nonzero(strays))
  used = np.arange(_LONGEST) < lengths[:, None]

  of_a_liked = np.take_along_axis(liked, random.integers(0, _LIKED, (count, 1)), axis=1)[:, 0]
  category = np.where(random.random(count) < 0.6, of_a_liked, _categories(random, count))
  same = (categories == category[:, None]) & used
  newest = used & (np.arange(_LONGEST) >= lengths[:, None] - _NEWEST)
  odds = _BIAS + _CATEGORY_WEIGHT * distributions.weight(0, category)
  odds += _HISTORY_WEIGHT * same.sum(1) / lengths + _NEWEST_WEIGHT * (same & newest).sum(1) / newest.sum(1)

  others = _categories(random, (count, _LONGEST))
  columns = {
      taobao.LABEL: distributions.clicks(random, odds),
      "user": _words(users),
      "item": _words(_items(random, category)),
      "category": _words(category),
  }
  values = (_items(random, categories), categories, _items(random, others), others)
  for name, matrix in zip((*taobao.HISTORY, *taobao.NEGATIVE), values, strict=True):
    words = iter(_words(matrix[used]))
    columns[name] = [list(itertools.islice(words, length)) for length in lengths.tolist()]
  return columns


def write_lines(path: pathlib.Path, chunks: Iterable[row_files.Columns]) -> None:
  """Writes a file of lines and, beside it, the file of their negatives."""
  separators = taobao.SEPARATOR.encode(), taobao.HISTORY_SEPARATOR.encode()
  negatives = path.with_stem(path.stem + "_negative")
  row_files.write_csv({path: taobao.COLUMNS, negatives: taobao.NEGATIVE}, chunks, *separators)


def _liked_category(users: np.ndarray, index: int) -> np.ndarray:
  return _popular(distributions.uniform(200 + index, users))


def _categories(random: np.random.Generator, shape: int | tuple) -> np.ndarray:
  return _popular(random.random(shape))


def _popular(draws: np.ndarray) -> np.ndarray:
  """Turns uniform draws into categories, of which some are much more popular than others."""
  return distributions.power_law(draws, _CATEGORIES, _SKEW)


def _items(random: np.random.Generator, categories: np.ndarray) -> np.ndarray:
  return categories * _ITEMS_OF_A_CATEGORY + distributions.zipf(random, _ITEMS_OF_A_CATEGORY, _SKEW, categories.shape)


def _words(values: np.ndarray) -> list[bytes]:
  return [b"%d" % value for value in values.tolist()]
