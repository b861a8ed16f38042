# SPDX-License-Identifier: Apache-2.0
"""Random numbers for synthetic rows."""

from __future__ import annotations

import numpy as np

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def zipf(random: np.random.Generator, cardinality: int, skew: float, shape: int | tuple) -> np.ndarray:
  """Draws values 0 to cardinality - 1; value k is drawn about as often as 1 / (k + 1)^skew.

  Args:
    random: Draws the values.
    cardinality: The number of values.
    skew: The exponent; above 0 and not 1.
    shape: The shape of the result.

  Returns:
    Values of type int64.
  """
  return power_law(random.random(shape), cardinality, skew)


def power_law(draws: np.ndarray, cardinality: int, skew: float) -> np.ndarray:
  """Turns uniform draws from 0 to 1 into values as `zipf` draws them.

  The distribution is that of the continuous power law, rounded down, which needs no table.
  """
  power = 1.0 - skew
  values = (((cardinality + 1.0) ** power - 1.0) * draws + 1.0) ** (1.0 / power)
  return np.minimum(values.astype(np.int64) - 1, cardinality - 1)


def mix(column: int, value: np.ndarray) -> np.ndarray:
  """Returns 64 bits that look random and depend on the column and the value alone (the finalizer of SplitMix64)."""
  bits = value.astype(np.uint64) + np.uint64(((column + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
  for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
    bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
  return bits ^ (bits >> np.uint64(31))


def uniform(column: int, value: np.ndarray) -> np.ndarray:
  """Returns a number from 0 to 1 that depends on the column and the value alone."""
  return (mix(column, value) >> np.uint64(11)).astype(np.float64) / 2.0**53


def weight(column: int, value: np.ndarray) -> np.ndarray:
  """Returns a number of mean 0 and variance 1 that depends on the column and the value alone."""
  return (uniform(column, value) - 0.5) * 12**0.5


def hexadecimal(bits: np.ndarray) -> list[bytes]:
  """Returns the lowest 32 bits of each number as eight hexadecimal digits."""
  shifts = np.arange(28, -1, -4, dtype=np.uint64)
  digits = _HEX[((bits[:, None] >> shifts) & np.uint64(15)).astype(np.intp)]
  return np.ascontiguousarray(digits).view("S8")[:, 0].tolist()


def clicks(random: np.random.Generator, odds: np.ndarray) -> list[int]:
  """Draws 0 or 1 for each of the log-odds."""
  return (random.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64).tolist()
