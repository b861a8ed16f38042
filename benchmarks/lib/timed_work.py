# SPDX-License-Identifier: Apache-2.0
"""Work that takes a given time, asleep or computing."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

# NumPy needs about 0.1 ms for the hyperbolic tangents of that many numbers.
_NUMBERS = 262_144
# After so many numbers, a prime, `jitter` repeats.
JITTER_PERIOD = 1009
_JITTER = np.random.default_rng(0).uniform(0, 1, JITTER_PERIOD)


def slow(value: tf.Tensor, milliseconds: Callable[[int], float], computes: bool = False) -> tf.Tensor:
  """Returns a scalar after some time.

  Args:
    value: An integer.
    milliseconds: Returns the time, given the value.
    computes: Whether to spend CPU time of one thread, instead of sleeping.
  """

  def spend(number: np.ndarray) -> np.ndarray:
    _spend(milliseconds(int(number)), computes)
    return number

  return tf.ensure_shape(tf.numpy_function(spend, [value], value.dtype), value.shape)


def jitter(number: int, most: float) -> float:
  """Returns a time between 0 and `most` that is always the same for a number, and looks random."""
  return most * _JITTER[number % JITTER_PERIOD]


def counter() -> tf.data.Dataset:
  """Returns the numbers from 0 on, without a thread that tunes the dataset and would disturb what is measured."""
  options = tf.data.Options()
  options.autotune.enabled = False
  return tf.data.Dataset.counter().with_options(options)


def _spend(milliseconds: float, computes: bool) -> None:
  if not computes:
    time.sleep(milliseconds / 1e3)
    return
  # Elementwise, because NumPy releases the interpreter's lock, and has one thread; a product of matrices has several.
  numbers = np.ones([_NUMBERS], np.float32)
  end = time.thread_time() + milliseconds / 1e3
  while time.thread_time() < end:
    np.tanh(numbers, out=numbers)
