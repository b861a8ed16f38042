# SPDX-License-Identifier: Apache-2.0
"""Errors for programs of TensorFlow 2 that run with TensorFlow 1's root: they name the environment variable.

Such a program gets an AttributeError for a layer, a function or a method that version 1 has not, which looks like a
broken installation.

Before there is any root, `version_2_packages` imports this module, which therefore imports TensorFlow only when used.
"""

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

REMEDY = (
    "This program runs with TensorFlow 1's API. If it is written for TensorFlow 2, set the environment variable"
    " TF_API_VERSION=2 before it imports TensorFlow.")

_API = "tensorflow._api.v1."
_KERAS = "keras.api._v1.keras"
_KERAS_2 = "keras.api._v2.keras"


def install(root: types.ModuleType) -> None:
  """Lets TensorFlow 1's root, its modules, and what needs eager execution name the variable.

  Args:
    root: `tensorflow`, whose API is complete.
  """
  version_2 = root.compat.v2
  _say(root, "tf", lambda: version_2)
  for full_name, module in list(sys.modules.items()):
    below = full_name[len(_API):]
    if full_name.startswith(_API) and not below.startswith("compat"):
      _say(module, f"tf.{below}", functools.partial(_find, version_2, below))
  _explain_graph_mode()


def say_in_keras(module: types.ModuleType) -> None:
  """Lets a module of Keras name the variable if it belongs to the API of version 1.

  Args:
    module: A module that has just been imported.
  """
  full_name = module.__name__
  if full_name == _KERAS or full_name.startswith(f"{_KERAS}."):
    below = full_name[len(_KERAS):]
    _say(module, f"tf.keras{below}", functools.partial(importlib.import_module, f"{_KERAS_2}{below}"))


def _find(module: Any, path: str) -> Any:
  return functools.reduce(getattr, path.split("."), module)


def _say(module: Any, name: str, find_version_2: Callable[[], Any]) -> None:
  """Gives a module an error for the names that only version 2 has.

  Args:
    module: The module.
    name: Its name in the API.
    find_version_2: Returns the module that version 2 has in its place.
  """
  # TensorFlow wraps the modules of version 1, to warn of what is deprecated.
  names = vars(getattr(module, "_tfmw_wrapped_module", module))
  before = names.get("__getattr__")
  shown = module.__name__

  def find(attribute: str) -> Any:
    if before is not None:
      try:
        return before(attribute)
      except AttributeError:
        pass
    error = f"module '{shown}' has no attribute '{attribute}'"
    if not attribute.startswith("_") and _has(find_version_2, attribute):
      error = f"{name}.{attribute} is of TensorFlow 2. {REMEDY}"
    raise AttributeError(error)

  names["__getattr__"] = find


def _has(find_module: Callable[[], Any], attribute: str) -> bool:
  try:
    return hasattr(find_module(), attribute)
  except (AttributeError, ImportError):
    return False  # Version 2 has no such module.


def _explain_graph_mode() -> None:
  """Lets the methods that need eager execution name the variable, while that is off."""
  from tensorflow.python.data.ops import dataset_ops  # pylint: disable=g-import-not-at-top
  from tensorflow.python.framework import ops  # pylint: disable=g-import-not-at-top
  from tensorflow.python.framework import tensor  # pylint: disable=g-import-not-at-top
  from tensorflow.python.ops import ref_variable  # pylint: disable=g-import-not-at-top

  def add_remedy(error: Exception) -> Exception:
    if ops.executing_eagerly_outside_functions():
      return error
    return type(error)(f"{str(error).rstrip('.')}. {REMEDY}")

  def explain_missing(of_class: Any) -> None:
    before = getattr(of_class, "__getattr__", object.__getattribute__)

    def find(self: Any, attribute: str) -> Any:
      try:
        return before(self, attribute)
      except AttributeError as error:
        if attribute != "numpy":
          raise
        raise add_remedy(error) from None

    of_class.__getattr__ = find

  def explain_error(of_class: Any, method: str) -> None:
    before = getattr(of_class, method)

    @functools.wraps(before)
    def call(self: Any) -> Any:
      try:
        return before(self)
      except RuntimeError as error:
        raise add_remedy(error) from None

    setattr(of_class, method, call)

  explain_missing(tensor.Tensor)
  explain_missing(ref_variable.RefVariable)
  for method in ("__iter__", "as_numpy_iterator"):
    explain_error(dataset_ops.DatasetV2, method)
