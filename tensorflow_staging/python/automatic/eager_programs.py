# SPDX-License-Identifier: Apache-2.0
"""Tells a program of TensorFlow 2 that the environment variable has changed nothing in it, and what to use instead."""

import atexit
import os
import sys

from tensorflow.python.eager import context

from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.automatic import spoken_line

# The module that TensorFlow imports when a program creates its first session or server.
_OF_SESSIONS = f"{__package__}.session_config"


@atexit.register
def _end() -> None:
  is_on = os.environ.get(setting.VARIABLE) == setting.Setting.ON.value
  if is_on and _OF_SESSIONS not in sys.modules and _has_run():
    spoken_line.say(
        f"{setting.VARIABLE}=1 has changed nothing: this program opened no session. In TensorFlow 2, give fit"
        " callbacks=[tf.staging.SmartStage()], or call step = tf.staging.ahead(step) for a tf.function of your own.")


def _has_run() -> bool:
  """Returns whether this process has run something of TensorFlow 2, and not only imported it."""
  return context.executing_eagerly() and context.context()._initialized
