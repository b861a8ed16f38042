# SPDX-License-Identifier: Apache-2.0
"""Lets a function of the API say that it was given without parentheses where what it returns is due."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import NoReturn

# The attribute of such a function that has the text of its error.
_TEXT = "_staging_uncalled"


def refuse_methods(function: Callable[..., Any], name: str, methods: Iterable[str]) -> None:
  """Gives a function the methods of what it returns, which raise an error that says to call it.

  So whoever is given the function, such as Keras in a list of callbacks, tells what is wrong.

  Args:
    function: The function.
    name: Its name in the API.
    methods: The names of the methods that are called first.
  """
  text = f"{name} was given without parentheses. Write {name}(), which returns what is needed here."

  def refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(text)

  setattr(function, _TEXT, text)
  for method in methods:
    setattr(function, method, refuse)


def check(value: Any) -> None:
  """Raises a TypeError if a value is such a function."""
  text = getattr(value, "__dict__", {}).get(_TEXT)
  if text is not None:
    raise TypeError(text)
