# SPDX-License-Identifier: Apache-2.0
"""What a running method of Keras has, which it gives its callbacks no reference to."""

import sys
from typing import Any
from typing import Optional


def local_of(name: str, *methods: str) -> Optional[Any]:
  """Returns a local variable of the method of Keras that calls the caller; None if there is none.

  Args:
    name: The name of the variable.
    *methods: The names of the methods. Of several around the caller, it is the innermost.
  """
  frame = sys._getframe()  # pylint: disable=protected-access
  while frame is not None:
    # A class of the program's own may have a method of that name around Keras's.
    if frame.f_code.co_name in methods and name in frame.f_locals:
      return frame.f_locals[name]
    frame = frame.f_back
  return None
