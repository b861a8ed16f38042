# SPDX-License-Identifier: Apache-2.0
"""Imports the plugin in programs that do not know of it, if the environment gives each `fit` the callback.

The wheel has this file beside the package, since the package imports TensorFlow, and a .pth file with which Python runs
it at its start. TensorFlow and the plugin are imported when the program imports Keras.
"""

import importlib
import importlib.util
import pathlib
from typing import Any


def _import_plugin(model: Any) -> None:
  del model
  importlib.import_module("tensorflow_staging")


def _watch() -> None:
  folder = pathlib.Path(__file__).parent / "tensorflow_staging/python/automatic"
  spec = importlib.util.spec_from_file_location("_tensorflow_staging_import_watch", folder / "import_watch.py")
  import_watch = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(import_watch)
  for module, class_name in import_watch.KERAS_CLASSES:
    import_watch.when_imported(module, class_name, _import_plugin)


_watch()
