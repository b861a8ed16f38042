# SPDX-License-Identifier: Apache-2.0
"""Tells a program of TensorFlow 2 that the environment variable has changed nothing in it, and what to use instead."""

import atexit
import os
import sys

from tensorflow.python.eager import context

from tensorflow_staging.python import api_name
from tensorflow_staging.python.automatic import printed_line
from tensorflow_staging.python.automatic import setting

# Imported when a program creates its first session or server, or calls its first fit.
_OF_WHAT_IS_STAGED = f"{__package__}.program_end"


@atexit.register
def _end() -> None:
  is_on = os.environ.get(setting.VARIABLE) == setting.Setting.ON.value
  if is_on and _OF_WHAT_IS_STAGED not in sys.modules and _has_run():
    printed_line.say(
        f"{setting.VARIABLE}=1 has changed nothing: this program opened no session and called no fit. For a tf.function"
        f" of your own, call step = {api_name.API}.ahead(step).")


def _has_run() -> bool:
  """Returns whether this process has run something of TensorFlow 2, and not only imported it."""
  return context.executing_eagerly() and context.context()._initialized
