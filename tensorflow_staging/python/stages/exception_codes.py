# SPDX-License-Identifier: Apache-2.0
"""Maps the exception types that users name to the status codes that the runner compares."""

from collections.abc import Iterable
from typing import Any

from tensorflow.python.framework import errors

# All error codes, and the exception class that a session raises for each. StopIteration is included
# because an op that calls Python turns it into OUT_OF_RANGE, and older documents name it.
_CODES = range(errors.CANCELLED, errors.UNAUTHENTICATED + 1)
_CODE_OF_CLASS = {errors.exception_type_from_error_code(code): code for code in _CODES}
_CODE_OF_CLASS[StopIteration] = errors.OUT_OF_RANGE


def exception_codes(argument: str, types: Iterable[Any]) -> tuple[int, ...]:
  """Maps exception types to status codes.

  Args:
    argument: The name of the argument that holds `types`, for error messages.
    types: A list, tuple or set of codes such as `tf.errors.OUT_OF_RANGE` and classes such as
      `tf.errors.OutOfRangeError`.

  Returns:
    The codes without duplicates, in the order of `types`.

  Raises:
    TypeError: If `types` is not a list, tuple or set, or an entry is neither a code nor a class.
    ValueError: If an entry is an integer but not an error code, or a class that does not stand
      for exactly one error code.
  """
  if not isinstance(types, (list, tuple, set, frozenset)):
    raise TypeError(
        f"{argument} must be a tuple of codes such as tf.errors.OUT_OF_RANGE or of classes such"
        f" as tf.errors.OutOfRangeError, got {types!r} of type {type(types).__name__}.")
  codes = [_code(f"{argument}[{i}]", entry) for i, entry in enumerate(types)]
  return tuple(dict.fromkeys(codes))


def _code(argument: str, entry: Any) -> int:
  if isinstance(entry, type):
    if entry not in _CODE_OF_CLASS:
      raise ValueError(
          f"{argument} must be a class of tf.errors that stands for one code, such as"
          f" tf.errors.OutOfRangeError, or StopIteration, got {entry.__name__}.")
    return _CODE_OF_CLASS[entry]
  if isinstance(entry, bool) or not isinstance(entry, int):
    raise TypeError(
        f"{argument} must be a code such as tf.errors.OUT_OF_RANGE or a class such as"
        f" tf.errors.OutOfRangeError, got {entry!r} of type {type(entry).__name__}.")
  if entry not in _CODES:
    raise ValueError(
        f"{argument} must be an error code from {_CODES[0]} to {_CODES[-1]}, got {entry}.")
  return entry
