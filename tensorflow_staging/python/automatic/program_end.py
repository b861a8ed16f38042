# SPDX-License-Identifier: Apache-2.0
"""Says at the end of a program what the stages have gained that it has by the environment.

Imported when a program creates its first session or server, or calls its first `fit`.
"""

import atexit
import os
from collections.abc import Callable

from tensorflow_staging.python.automatic import notices

_is_asked = False
# Called first: they note what has not been noted yet.
_collectors: list[Callable[[], None]] = []


def say_what_it_gained() -> None:
  """Lets the end of the program say it."""
  global _is_asked
  _is_asked = True


def collect_with(collect: Callable[[], None]) -> None:
  """Lets the end of the program call a function before it says anything."""
  _collectors.append(collect)


@atexit.register
def _end() -> None:
  if not _is_asked:
    return
  for collect in _collectors:
    collect()
  notices.say_what_it_gained()


def _forget() -> None:
  """In a forked child process, which says only what it does itself."""
  global _is_asked
  _is_asked = False


os.register_at_fork(after_in_child=_forget)
