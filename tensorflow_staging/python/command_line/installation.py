# SPDX-License-Identifier: Apache-2.0
"""What the commands have to know of the installation: that of the fork, or that of the plugin."""

import importlib
from typing import Any

from tensorflow_staging.python import api_name

_MODULE = "plugin_installation" if api_name.IS_PLUGIN else "fork_installation"


def of_this() -> Any:
  """Returns the module with `version`, for the option --version, and `findings`, for the doctor."""
  return importlib.import_module(f"tensorflow_staging.python.command_line.{_MODULE}")
