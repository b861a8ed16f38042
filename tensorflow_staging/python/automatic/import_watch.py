# SPDX-License-Identifier: Apache-2.0
"""Changes a module as soon as a program imports it, and does not import it for that: Keras takes long."""

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

# The classes with the method `fit` of all models: of TensorFlow's own Keras 2, of tf_keras, and of Keras 3.
KERAS_CLASSES = (
    ("keras.src.engine.training", "Model"), ("tf_keras.src.engine.training", "Model"),
    ("keras.src.backend.tensorflow.trainer", "TensorFlowTrainer"))


def when_imported(name: str, class_name: str, change: Callable[[Any], None]) -> None:
  """Calls a function with a class when its module has been imported: now, if it has been already.

  Args:
    name: The name of the module.
    class_name: The name of the class.
    change: The function.
  """
  if (imported := getattr(sys.modules.get(name), class_name, None)) is not None:
    change(imported)
  else:
    sys.meta_path.insert(0, _Finder(name, lambda module: change(getattr(module, class_name))))


class _Finder(importlib.abc.MetaPathFinder):
  """Finds one module as without it, and lets its loader change it."""

  def __init__(self, name: str, change: Callable[[Any], None]):
    self._name = name
    self._change = change

  def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
    del path, target
    if fullname != self._name or self not in sys.meta_path:
      return None
    sys.meta_path.remove(self)
    spec = importlib.util.find_spec(fullname)
    if spec is not None and spec.loader is not None:
      execute = spec.loader.exec_module

      def execute_and_change(module: Any) -> None:
        execute(module)
        self._change(module)

      spec.loader.exec_module = execute_and_change
    return spec
