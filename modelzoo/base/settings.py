# SPDX-License-Identifier: Apache-2.0
"""Classes of settings: each field is checked, and is a flag of the command line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

_S = TypeVar("_S", bound="Settings")


def setting(default: Any, help_text: str, *, least: float | None = None, most: float | None = None,
            choices: Sequence[str] = ()) -> Any:
  """Returns a field of a class of settings.

  Args:
    default: Its default, whose type is the field's type: bool, int, float, str, or a tuple of int or str.
    help_text: What the field means.
    least: The smallest value allowed, also of each number in a tuple.
    most: The largest one.
    choices: The values allowed; empty if any value is.
  """
  return dataclasses.field(default=default, metadata=dict(help=help_text, least=least, most=most, choices=choices))


@dataclasses.dataclass(frozen=True)
class Settings:
  """Base of the classes of settings, which are frozen dataclasses whose fields are made by `setting`."""

  def __post_init__(self):
    """Checks the values.

    Raises:
      TypeError: A value has another type than the field's default.
      ValueError: A value is too small or too large, or not one of the choices.
    """
    for field in dataclasses.fields(self):
      _check(field, getattr(self, field.name))

  @classmethod
  def add_flags(cls, parser: argparse.ArgumentParser) -> None:
    """Adds a flag for each field."""
    group = parser.add_argument_group(cls.__doc__.partition("\n")[0].rstrip("."))
    for field in dataclasses.fields(cls):
      flag, text = f"--{field.name}", field.metadata["help"].replace("%", "%%")
      if isinstance(field.default, bool):
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=text)
        continue
      if field.default not in ((), ""):
        text += " (default: %(default)s)"
      default = _text(field.default) if isinstance(field.default, tuple) else field.default
      choices = field.metadata["choices"] or None
      group.add_argument(
          flag, type=_parse_function(field), default=default, choices=choices, help=text,
          metavar=None if choices else field.name.upper())

  @classmethod
  def from_flags(cls: type[_S], flags: argparse.Namespace) -> _S:
    """Returns the settings that the flags name."""
    return cls(**{field.name: getattr(flags, field.name) for field in dataclasses.fields(cls)})


def _check(field: dataclasses.Field, value: Any) -> None:
  wanted = type(field.default)
  if not (isinstance(value, wanted) or wanted is float and isinstance(value, int)) or (
      isinstance(value, bool) and wanted is not bool):
    raise TypeError(f"{field.name} is {value!r}, but must be of type {wanted.__name__}")
  choices, least = field.metadata["choices"], field.metadata["least"]
  if choices and value not in choices:
    raise ValueError(f"{field.name} is {value!r}, but must be one of {', '.join(choices)}")
  if least is not None:
    for number in value if isinstance(value, tuple) else [value]:
      if not number >= least:
        raise ValueError(f"{field.name} is {_text(value)}, but must be at least {least}")
  most = field.metadata["most"]
  if most is not None and not value <= most:
    raise ValueError(f"{field.name} is {value}, but must be at most {most}")


def _parse_function(field: dataclasses.Field) -> Callable[[str], Any]:
  """Returns the function that turns a flag's text into a checked value."""
  least, most = field.metadata["least"], field.metadata["most"]

  def parse(text: str) -> Any:
    try:
      value = _parse(text, field)
      _check(field, value)
    except ValueError as error:
      kinds = {int: "a whole number", float: "a number", tuple: "a list such as 512,256"}
      kind = kinds.get(type(field.default), "text")
      limit = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"
      raise argparse.ArgumentTypeError(f"{text!r} is not {kind}{limit}") from error
    return value

  if field.metadata["choices"]:
    return str  # argparse itself names the choices.
  return parse


def _parse(text: str, field: dataclasses.Field) -> Any:
  if not isinstance(field.default, tuple):
    return type(field.default)(text)
  of_numbers = field.metadata["least"] is not None
  return tuple(int(part) if of_numbers else part for part in text.split(",") if part)


def _text(value: Any) -> str:
  return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
