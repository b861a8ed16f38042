# SPDX-License-Identifier: Apache-2.0
"""The ops of a random program, and its data, as TensorFlow computes them; `regions.run` says what they compute."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs

_NO_FILE = "/no such folder/"


class Values(NamedTuple):
  """The tensors of `regions.Values`."""

  record: tuple[tf.Tensor, ...]
  total: tf.Tensor
  last: tf.Tensor


def nothing_read() -> Values:
  """Returns the values at the beginning of a step."""
  return Values((), _int(0), _int(0))


def dataset(source: int, base: Any, length: Any, invalid: Any, missing: Any, *, prefetches: bool) -> tf.data.Dataset:
  """Returns data as `iterator_model.Data` describes them.

  Args:
    source: The number of the source.
    base: Scalar of type int64, as the following.
    length: How many elements there are.
    invalid: Vector; where reads fail with an error.
    missing: Vector; where they fail with another one.
    prefetches: Whether tf.data reads ahead.
  """

  def element(position):
    number = outcomes.element(source, 0, 0) + base * outcomes.POSITIONS + position
    failure = tf.strings.join(["source ", tf.strings.as_string(number)])
    number += _fail(outcomes.INVALID, tf.reduce_any(tf.equal(position, invalid)), failure)
    return number + _fail(outcomes.MISSING, tf.reduce_any(tf.equal(position, missing)), failure)

  data = tf.data.Dataset.range(length).map(element)
  return data.prefetch(2) if prefetches else data


class Ops:
  """Adds ops that read some iterators."""

  def __init__(
      self, program: programs.Program, iterators: Mapping[str, Any], handle: Callable[[str], tf.Tensor] | None):
    """Prepares to add ops.

    Args:
      program: The program.
      iterators: What reads each source, by its name.
      handle: Returns the string handle of a source's iterator. None if the iterators have none.
    """
    self._program = program
    self._iterators = iterators
    self._handle = handle

  def add(self, ops: Sequence[programs.Op], values: Values) -> Values:
    """Adds ops.

    Args:
      ops: The ops.
      values: What was read before them.

    Returns:
      What has been read after them.
    """
    for op in ops:
      if isinstance(op, programs.Check):
        values = values._replace(total=self._check(op, values))
      else:
        read = self._read(op)
        number, total, last = (tf.function(read) if self._program.in_functions else read)(values.total, values.last)
        values = Values((*values.record, number), total, last)
    return values

  def _check(self, op: programs.Check, values: Values) -> tf.Tensor:
    failure = tf.strings.join(["region ", tf.strings.as_string(values.last)])
    return values.total + _fail(op.code, tf.equal(values.total % op.divisor, 0), failure)

  def _read(self, op: programs.Read) -> Callable[[tf.Tensor, tf.Tensor], Sequence[tf.Tensor]]:
    """Returns a function of `Values.total` and `Values.last` that returns what is read, and these two after it."""

    def read(total: tf.Tensor, last: tf.Tensor) -> Sequence[tf.Tensor]:
      if not op.only_if_even:
        return self._read_chosen(op, total)
      return tf.cond(
          tf.equal(total % 2, 0), lambda: self._read_chosen(op, total),
          lambda: (_int(outcomes.NOTHING), tf.identity(total), tf.identity(last)))

    return read

  def _read_chosen(self, op: programs.Read, total: tf.Tensor) -> Sequence[tf.Tensor]:
    if op.chooses_anew:
      return _read_times(lambda before: self._choose(op, before, _get_next_after(before)), op.times, total)
    return self._choose(op, total, lambda iterator: _read_times(
        lambda before: _get_next_after(before)(iterator), op.times, total))

  def _choose(self, op: programs.Read, total: tf.Tensor, read: Callable[[Any], Any]) -> Any:
    """Returns what `read` returns for the iterator that the total chooses."""
    iterators = [self._iterators[name] for name in op.names]
    if len(iterators) == 1:
      return read(iterators[0])
    is_first = tf.equal(total % 2, 0)
    if self._program.by_handle and self._handle is not None:
      handle = tf.where(is_first, *(self._handle(name) for name in op.names))
      return read(tf.compat.v1.data.Iterator.from_string_handle(handle, tf.int64, []))
    first, second = iterators
    return tf.cond(is_first, lambda: read(first), lambda: read(second))


def _get_next_after(before: tf.Tensor) -> Callable[[Any], tf.Tensor]:
  """Returns what reads an iterator once a tensor is known: only so do the elements have an order."""

  def get_next(iterator):
    with tf.control_dependencies([before]):
      return iterator.get_next()

  return get_next


def _read_times(read: Callable[[tf.Tensor], tf.Tensor], times: int, total: tf.Tensor) -> Sequence[tf.Tensor]:
  def body(i, number, total, last):
    del last
    element = read(total)
    return i + 1, number * outcomes.MANY + element, total + element % outcomes.POSITIONS, element

  if times == 1:
    return body(_int(0), _int(0), total, None)[1:]
  return tuple(tf.while_loop(lambda i, *_: i < times, body, [_int(0), _int(0), total, _int(0)])[1:])


def _fail(code: str, condition: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
  """Returns 0, unless a condition is true: then it fails with an error whose message has a text."""
  if code == outcomes.INVALID:
    return tf.strings.to_number(tf.where(condition, text, "0"), tf.int64)
  path = tf.where(condition, tf.strings.join([_NO_FILE, text]), "/dev/null")
  return tf.cast(tf.strings.length(tf.io.read_file(path)), tf.int64)


def _int(value: int) -> tf.Tensor:
  return tf.constant(value, tf.int64)


def outcome_of(run: Callable[[], Any]) -> outcomes.Outcome:
  """Returns what a call returns, or its failure.

  Args:
    run: Runs a step or reads an iterator.
  """
  try:
    return run()
  except tf.errors.OutOfRangeError:
    return outcomes.END
  except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
    found = re.search(r"(source|region) \d+", error.message)
    if not found:
      raise
    return outcomes.Error(type(error).__name__, found[0])
