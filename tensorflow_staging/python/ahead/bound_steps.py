# SPDX-License-Identifier: Apache-2.0
"""The steps of the objects of a class that has one as a method."""

import weakref
from collections.abc import Callable
from typing import Any


class BoundSteps:
  """Has a step for each object, while the object lives. Objects are told apart by their identity."""

  def __init__(self):
    # By the id of an object: a reference to it, which removes the entry, and its step.
    self._steps: dict[int, tuple[weakref.ref, Any]] = {}

  def of(self, instance: Any, make: Callable[[], Any]) -> Any:
    """Returns the step of an object.

    Args:
      instance: The object.
      make: Returns a new step, which must not keep the object alive.
    """
    known = self._steps.get(id(instance))
    if known is not None and known[0]() is instance:
      return known[1]
    try:
      reference = weakref.ref(instance, self._remover(id(instance)))
    except TypeError:
      return make()  # Nothing says when it ends, as for a class with __slots__.
    return self._steps.setdefault(id(instance), (reference, make()))[1]

  def _remover(self, key: int) -> Callable[[Any], None]:
    steps = self._steps

    def remove(reference: weakref.ref) -> None:
      # Another object may have the id already.
      if key in steps and steps[key][0] is reference:
        del steps[key]

    return remove
